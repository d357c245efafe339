//! A script's text, letter by letter, with the line that is being read.

use crate::script::{Micros, ScriptError};

/// Where reading is.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning.
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, line: 1 }
    }
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
    /// Where in the text, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }
    /// The text since `start`, a position.
    pub fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }
    /// What is left.
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    /// The next letter.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    /// Takes the next letter.
    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }
    /// Takes `word` if it is next.
    pub fn eat(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.at += word.len();
            self.line += word.matches('\n').count();
        }
        is_next
    }
    /// Takes letters as long as `keep` holds.
    pub fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&keep) {
            self.next();
        }
        self.since(start)
    }
    /// Takes everything before `end`, and `end`.
    pub fn take_until(&mut self, end: &str, what: &str) -> Result<&'a str, ScriptError> {
        let line = self.line;
        let Some(n) = self.rest().find(end) else {
            return Err(ScriptError { line, problem: format!("{what} is not closed; add {end}") });
        };
        let start = self.at;
        while self.at < start + n {
            self.next();
        }
        let inner = self.since(start);
        self.eat(end);
        Ok(inner)
    }
    /// Spaces and tabs.
    pub fn skip_blanks(&mut self) {
        self.take_while(|c| c == ' ' || c == '\t');
    }
    /// Spaces, ends of lines and comments (`//`, `/* */`, and lines that begin with `#`).
    pub fn skip_space(&mut self) -> Result<(), ScriptError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") || self.peek() == Some('#') {
                self.take_while(|c| c != '\n');
            } else if self.eat("/*") {
                self.take_until("*/", "the comment")?;
            } else {
                return Ok(());
            }
        }
    }
    /// Takes `word`, or refuses.
    pub fn expect(&mut self, word: &str, place: &str) -> Result<(), ScriptError> {
        self.skip_space()?;
        if self.eat(word) {
            return Ok(());
        }
        Err(self.refuse(format!("expected '{word}' {place}, found '{}'; write it as in the reference of the language", self.glimpse())))
    }
    /// A whole number.
    pub fn number(&mut self, what: &str) -> Result<u64, ScriptError> {
        self.skip_space()?;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits
            .parse()
            .map_err(|_| self.refuse(format!("{what} must be a whole number, found '{}{}'; write digits", digits, self.glimpse())))
    }
    /// Whether a time is next.
    pub fn at_time(&self) -> bool {
        let mut letters = self.rest().chars();
        match letters.next() {
            Some('0'..='9') => true,
            Some('.') => letters.next().is_some_and(|c| c.is_ascii_digit()),
            _ => false,
        }
    }
    /// Seconds with a fraction, as µs.
    pub fn seconds(&mut self) -> Result<Micros, ScriptError> {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        if self.peek() == Some('.') && !self.rest().starts_with("..") {
            self.next();
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = self.since(start);
        let seconds = text.parse::<f64>().ok().filter(|s| *s <= MOST_SECONDS);
        let seconds =
            seconds.ok_or_else(|| self.refuse(format!("the time '{text}' is no number of seconds up to {MOST_SECONDS}; write +0.1")))?;
        Ok((seconds * 1e6).round() as Micros)
    }
    /// An error in this line.
    pub fn refuse(&self, problem: String) -> ScriptError {
        ScriptError { line: self.line, problem }
    }
    /// The next few letters of this line, to be quoted.
    pub fn glimpse(&self) -> &'a str {
        let line = self.rest().lines().next().unwrap_or_default();
        match line.char_indices().nth(GLIMPSE) {
            Some((n, _)) => &line[..n],
            None => line,
        }
    }
}

/// Letters of a script that an error quotes.
const GLIMPSE: usize = 24;
/// Longest time of a script, s.
const MOST_SECONDS: f64 = 1e5;
