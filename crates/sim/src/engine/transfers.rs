//! Connections that arrive at random: each is made when it begins and its place is given to another when it is over, so that a trial takes memory for
//! those that are open at a time, not for all.
//!
//! A connection has a number that packets carry, which no other has, and a slot among the engine's flows, behind the plan's own, which it leaves.

use super::node::Node;
use super::{Engine, LINGER};
use crate::checked::{CheckedPlan, FlowControl};
use crate::flow::Flow;
use tcpscape_base::Time;
use tcpscape_plan::results::TransfersSummary;
use tcpscape_plan::transfers::{draw, Tally, Transfer};
use tcpscape_plan::TransfersPlan;

/// The slot of a connection that has none.
const NONE: u32 = u32::MAX;

/// A connection that was drawn, and which entry it is of.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    entry: u32,
    transfer: Transfer,
}

/// An entry of the plan's transfers.
struct Entry<'a> {
    plan: &'a TransfersPlan,
    control: &'a FlowControl<'a>,
    tally: Tally,
}

/// The transfers of a trial.
pub(super) struct Transfers<'a> {
    entries: Vec<Entry<'a>>,
    /// In order of their starts.
    arrivals: Vec<Arrival>,
    /// How many of them have begun.
    begun: usize,
    /// Number of the first one, and the slot of the first one.
    first_number: usize,
    first_slot: usize,
    /// The slot of each that has begun.
    slots: Vec<u32>,
    /// Which one has each slot, and the slots that nobody has.
    holders: Vec<u32>,
    free: Vec<u32>,
}

impl<'a> Transfers<'a> {
    /// Draws those of a trial. Their numbers follow those of the flows and the probes.
    pub fn new(checked: &'a CheckedPlan<'a>, seed: u64) -> Transfers<'a> {
        let plan = checked.plan();
        let mut arrivals = Vec::new();
        for (i, entry) in plan.transfers.iter().enumerate() {
            let drawn = draw(entry, i, seed, plan.duration_ns);
            arrivals.extend(drawn.into_iter().map(|transfer| Arrival { entry: i as u32, transfer }));
        }
        arrivals.sort_by_key(|a| a.transfer.start_ns);
        let entry = |(plan, control)| Entry { plan, control, tally: Tally::new(plan) };
        Transfers {
            entries: checked.transfers().map(entry).collect(),
            arrivals,
            begun: 0,
            first_number: plan.flows.len() + plan.probes.len(),
            first_slot: plan.flows.len(),
            slots: Vec::new(),
            holders: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// When the next one begins.
    pub fn next(&self) -> Option<Time> {
        Some(Time(self.arrivals.get(self.begun)?.transfer.start_ns))
    }

    /// The slot of the connection whose packets carry this number; none for one that is over, and for a probe. The plan's flows have their own.
    #[inline]
    pub fn slot(&self, number: usize) -> Option<usize> {
        if number < self.first_slot {
            Some(number)
        } else {
            self.slot_of_transfer(number)
        }
    }

    #[cold]
    fn slot_of_transfer(&self, number: usize) -> Option<usize> {
        let slot = *self.slots.get(number.wrapping_sub(self.first_number))?;
        (slot != NONE).then_some(slot as usize)
    }

    /// The number that packets of the connection in a slot carry.
    #[inline]
    pub fn number(&self, slot: usize) -> usize {
        if slot < self.first_slot {
            slot
        } else {
            self.first_number + self.holder(slot)
        }
    }

    /// The connection in a slot behind those of the plan's flows.
    #[cold]
    fn holder(&self, slot: usize) -> usize {
        self.holders[slot - self.first_slot] as usize
    }

    /// The next connection begins: it gets a slot, which may be a new one at the end.
    fn begin(&mut self) -> (usize, usize) {
        let which = self.begun;
        self.begun += 1;
        let Arrival { entry, transfer } = self.arrivals[which];
        self.entries[entry as usize].tally.started(transfer.bytes);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.holders.push(NONE);
            (self.first_slot + self.holders.len() - 1) as u32
        });
        self.slots.push(slot);
        self.holders[slot as usize - self.first_slot] = which as u32;
        (which, slot as usize)
    }

    /// The connection in this slot was acknowledged in full.
    fn complete(&mut self, slot: usize, now: Time) {
        let Arrival { entry, transfer } = self.arrivals[self.holder(slot)];
        self.entries[entry as usize].tally.completed(transfer.bytes, now.since(Time(transfer.start_ns)));
    }

    /// What the connection in this slot has carried counts.
    fn count(&mut self, slot: usize, flow: &Flow<'_>) {
        let entry = self.arrivals[self.holder(slot)].entry as usize;
        let retransmits = flow.sender.info().retransmits + u64::from(flow.sender.repeated_syns());
        self.entries[entry].tally.carried(flow.bytes_received(), retransmits);
    }

    /// The connection in this slot is over.
    fn leave(&mut self, slot: usize) {
        let which = self.holder(slot);
        self.slots[which] = NONE;
        self.holders[slot - self.first_slot] = NONE;
        self.free.push(slot as u32);
    }

    /// The results, with what those have carried that are not over.
    pub fn summaries(&mut self, flows: &[Flow<'_>]) -> Vec<TransfersSummary> {
        for (slot, flow) in flows.iter().enumerate().skip(self.first_slot) {
            if self.holders[slot - self.first_slot] != NONE {
                self.count(slot, flow);
            }
        }
        self.entries.iter().map(|entry| entry.tally.summary()).collect()
    }
}

impl<'a> Engine<'a> {
    /// Connections begin, or the trial ends for those that are open.
    #[cold]
    pub(super) fn run_transfers(&mut self) {
        if self.now < self.end {
            self.begin_transfers();
        } else {
            (self.plan_flows..self.flows.len()).for_each(|slot| self.stop_flow(slot));
        }
        self.tell_departures();
    }

    /// Those begin whose time has come.
    fn begin_transfers(&mut self) {
        while self.transfers.next().is_some_and(|t| t <= self.now) {
            self.begin_transfer();
        }
        if self.transfers.next().is_none() {
            self.alive -= 1;
        }
        self.events.want(Node::Transfers, self.transfers.next().unwrap_or(self.end));
    }

    fn begin_transfer(&mut self) {
        let (which, slot) = self.transfers.begin();
        let Arrival { entry, transfer } = self.transfers.arrivals[which];
        let entry = &self.transfers.entries[entry as usize];
        self.network.join(entry.plan.flow.place, entry.plan.flow.up);
        let flow = self.hosts.transfer(entry.plan, entry.control, which, transfer);
        if slot == self.flows.len() {
            self.flows.push(flow);
            self.events.grow(Node::count(self.flows.len(), self.network.pipes()));
            self.writers.grow(self.flows.len());
            self.readers.grow(self.flows.len());
        } else {
            self.flows[slot] = flow;
        }
        self.alive += 1;
        self.begin_connection(slot);
    }

    /// Everything that the connection in slot `i` had to send was acknowledged. Its receiver's host may never hear that it is over.
    #[cold]
    pub(super) fn on_finished(&mut self, i: usize) {
        if i >= self.plan_flows {
            self.transfers.complete(i, self.now);
            self.events.want(Node::Flow(i as u32, super::Part::Connection), self.now + LINGER);
        }
    }

    /// Nothing has been heard of the receiver's host since the connection in slot `i` was done: the RST that ends it was lost.
    #[cold]
    pub(super) fn give_up(&mut self, i: usize) {
        if !self.flows[i].is_over() {
            self.flows[i].reset();
            self.on_over(i);
        }
    }

    /// The connection in slot `i` is over: a transfer leaves its slot to another.
    #[cold]
    pub(super) fn on_over(&mut self, i: usize) {
        self.alive -= 1;
        if i < self.plan_flows {
            return;
        }
        self.transfers.count(i, &self.flows[i]);
        self.transfers.leave(i);
        self.forget_reader(i);
        Node::of_flow(i).for_each(|node| self.events.cancel(node));
        if let Some(clock) = &mut self.clock {
            Node::of_flow(i).for_each(|node| clock.forget(node));
        }
        if self.writers.forget(i) | self.readers.forget(i) {
            self.events.want(Node::Cpu, self.now);
        }
    }
}
