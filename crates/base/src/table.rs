//! Tables of numbers, by columns: what every engine and the reader of captures hand over, never row by row.

/// A type of the numbers in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberType {
    /// Rust's name of it.
    pub name: &'static str,
    /// numpy's.
    pub numpy: &'static str,
    /// Bytes of a number.
    pub size: usize,
}

/// An integer that can be in a column.
pub trait Number: Copy + std::fmt::Debug {
    /// Its type.
    const TYPE: NumberType;
    /// Appends its bytes, the lowest first.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($t:ty: $numpy:literal),*) => {$(
        impl Number for $t {
            const TYPE: NumberType = NumberType { name: stringify!($t), numpy: $numpy, size: size_of::<$t>() };
            fn write(self, out: &mut Vec<u8>) { out.extend_from_slice(&self.to_le_bytes()); }
        }
    )*};
}
numbers!(u64: "<u8", u32: "<u4", u16: "<u2", u8: "|u1");

/// A named column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its numbers.
    pub kind: NumberType,
    /// The numbers, little-endian.
    pub bytes: Vec<u8>,
}

impl Column {
    /// A column of these numbers.
    pub fn of<N: Number>(name: &'static str, numbers: impl ExactSizeIterator<Item = N>) -> Column {
        let mut bytes = Vec::with_capacity(numbers.len() * N::TYPE.size);
        numbers.for_each(|n| n.write(&mut bytes));
        Column { name, kind: N::TYPE, bytes }
    }

    /// The same column as bytes, where each of its numbers fits into one.
    pub fn narrowed(self) -> Column {
        let fits = self.bytes.chunks(self.kind.size).all(|n| n[1..].iter().all(|&b| b == 0));
        match fits {
            true => Column { name: self.name, kind: u8::TYPE, bytes: self.bytes.into_iter().step_by(self.kind.size).collect() },
            false => self,
        }
    }
}

/// What a column has in each row: a number, or an option where not every source of such rows can tell; its column is none until one does.
pub trait Cell: Copy {
    /// The column.
    type Numbers: Clone + std::fmt::Debug + Default;
    /// Appends it.
    fn put(self, numbers: &mut Self::Numbers);
    /// The named column; none where there is none.
    fn column(name: &'static str, numbers: &Self::Numbers) -> Option<Column>;
}

impl<N: Number> Cell for N {
    type Numbers = Vec<N>;
    #[inline]
    fn put(self, numbers: &mut Vec<N>) {
        numbers.push(self);
    }
    fn column(name: &'static str, numbers: &Vec<N>) -> Option<Column> {
        Some(Column::of(name, numbers.iter().copied()))
    }
}

impl<N: Number> Cell for Option<N> {
    type Numbers = Option<Vec<N>>;
    fn put(self, numbers: &mut Option<Vec<N>>) {
        if let Some(number) = self {
            numbers.get_or_insert_with(Vec::new).push(number);
        }
    }
    fn column(name: &'static str, numbers: &Option<Vec<N>>) -> Option<Column> {
        numbers.as_ref().map(|numbers| Column::of(name, numbers.iter().copied()))
    }
}

/// A row whose fields are columns.
pub trait Row: Sized {
    /// The columns of rows, in the order of the fields.
    fn columns(rows: &[Self]) -> Vec<Column>;
}

/// A table by its fields: `columns Name of Row { field: u64, … }` is a type with a vector for each and one of its rows, `row Name { … }` one of a row.
#[macro_export]
macro_rules! table {
    ($(#[$about:meta])* columns $name:ident of $row:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $name { $($(#[$doc])* pub $field: <$type as $crate::Cell>::Numbers),* }
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $row { $($(#[$doc])* pub $field: $type),* }
        impl $name {
            /// Adds a row.
            #[inline]
            pub fn push(&mut self, row: $row) {
                $($crate::Cell::put(row.$field, &mut self.$field);)*
            }
            /// The columns, in the order of the fields.
            pub fn columns(&self) -> Vec<$crate::Column> {
                [$(<$type as $crate::Cell>::column(stringify!($field), &self.$field)),*].into_iter().flatten().collect()
            }
        }
    };
    ($(#[$about:meta])* row $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $type),* }
        impl $crate::Row for $name {
            fn columns(rows: &[Self]) -> Vec<$crate::Column> {
                vec![$($crate::Column::of(stringify!($field), rows.iter().map(|row| row.$field))),*]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::Row;

    table! {
        /// A table.
        columns Two of Pair { t: u64, n: u32, m: Option<u8> }
    }

    table! {
        /// A row.
        row One { t: u64, kind: u8 }
    }

    #[test]
    fn a_column_has_the_bytes_of_its_numbers_and_is_narrow_where_they_are() {
        let mut two = Two::default();
        [(1, 3), (258, 255)].into_iter().for_each(|(t, n)| two.push(Pair { t, n, m: None }));
        let [t, n] = &two.columns()[..] else { panic!() };
        assert_eq!(
            (t.name, t.kind.name, t.kind.numpy, &t.bytes[..]),
            ("t", "u64", "<u8", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0][..])
        );
        assert_eq!(t.clone().narrowed(), *t);
        assert_eq!(
            Two { m: Some(vec![7, 8]), ..Two::default() }.columns().last().map(|m| (m.name, m.bytes.clone())),
            Some(("m", vec![7, 8]))
        );
        assert_eq!((n.clone().narrowed().kind.name, n.clone().narrowed().bytes), ("u8", vec![3, 255]));
        let [t, kind] = &One::columns(&[One { t: 258, kind: 7 }])[..] else { panic!() };
        assert_eq!((t.kind.numpy, &t.bytes[..]), ("<u8", &[2, 1, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!((kind.name, kind.kind.numpy, &kind.bytes[..]), ("kind", "|u1", &[7][..]));
    }
}
