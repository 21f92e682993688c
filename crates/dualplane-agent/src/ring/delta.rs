//! Records as what changed since the record before of the same container, device or process, within one segment.
//!
//! A record of 176 bytes becomes 6 where nothing moved:
//!
//! | part | form |
//! |---|---|
//! | track | signed: how far from the one behind the last record's; a new one brings its kind and slot |
//! | time | signed: nanoseconds since the record before in the block |
//! | shape | which of the sets of fields that this segment has seen; a new one brings its bits |
//! | changed | a bit for each field of the shape |
//! | values | signed: the change of each field that changed |
//!
//! Rounds come in the same order each time, so the first is nearly always 0.

use std::collections::HashMap;

use dualplane_node::clock::Moment;
use dualplane_node::sample::{FIELDS, Record, RecordKind};

use super::number::{Cursor, put, put_signed};

/// Tracks of a segment, beyond which a new segment begins: containers, devices and all processes of a minute.
pub(super) const MAX_TRACKS: usize = 1 << 15;
/// Sets of fields of a segment. Some ten are in use.
const MAX_SHAPES: usize = 1 << 10;
/// Records of a block: more would be no round.
const MAX_RECORDS: usize = 1 << 16;

/// Kind, slot, and of a process on a GPU its pid: their records have nothing in common else.
type Key = (RecordKind, u16, u64);

fn key(r: &Record) -> Key {
    let pid = if r.kind == RecordKind::GpuProcess { r.field(0).unwrap_or_default() } else { 0 };
    (r.kind, r.slot, pid)
}

/// The last values of each field of one track.
#[derive(Debug)]
struct Track<K> {
    of: K,
    values: [u64; FIELDS],
}

/// Writes blocks of one segment.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    tracks: Vec<Track<Key>>,
    places: HashMap<(u8, u16, u64), usize>,
    shapes: Vec<u32>,
}

impl Encoder {
    /// No more records should come: a new segment is due.
    pub(super) fn is_full(&self) -> bool {
        self.tracks.len() > MAX_TRACKS / 2 || self.shapes.len() > MAX_SHAPES / 2
    }

    /// Appends a round. Records beyond what a segment can hold are left out and counted.
    pub(super) fn put(&mut self, records: &[Record], out: &mut Vec<u8>) -> u64 {
        let mut left_out = 0;
        let mut time = records.first().map_or(0, |r| r.at.0);
        let mut expected = 0;
        put(out, time);
        for r in records.iter().take(MAX_RECORDS) {
            let shape_left = self.shapes.len() < MAX_SHAPES || self.shapes.contains(&r.present());
            let place = if shape_left { self.place(key(r), expected, out) } else { None };
            let Some(place) = place else {
                left_out += 1;
                continue;
            };
            expected = place + 1;
            put_signed(out, r.at.0.wrapping_sub(time) as i64);
            time = r.at.0;
            self.shape(r.present(), out);
            let Some(track) = self.tracks.get_mut(place) else { continue };
            put_values(r, &mut track.values, out);
        }
        left_out + records.len().saturating_sub(MAX_RECORDS) as u64
    }

    /// Finds the track, or begins one.
    fn place(&mut self, of: Key, expected: usize, out: &mut Vec<u8>) -> Option<usize> {
        let ahead = |place: usize| (place as i64).wrapping_sub(expected as i64);
        if self.tracks.get(expected).is_some_and(|t| t.of == of) {
            put_signed(out, 0);
            return Some(expected);
        }
        let known = (of.0 as u8, of.1, of.2);
        if let Some(place) = self.places.get(&known) {
            put_signed(out, ahead(*place));
            return Some(*place);
        }
        let place = self.tracks.len();
        if place >= MAX_TRACKS {
            return None;
        }
        put_signed(out, ahead(place));
        out.push(of.0 as u8);
        put(out, u64::from(of.1));
        self.places.insert(known, place);
        self.tracks.push(Track { of, values: [0; FIELDS] });
        Some(place)
    }

    fn shape(&mut self, present: u32, out: &mut Vec<u8>) {
        let found = self.shapes.iter().position(|s| *s == present);
        put(out, found.unwrap_or(self.shapes.len()) as u64);
        if found.is_none() {
            put(out, u64::from(present));
            self.shapes.push(present);
        }
    }
}

fn put_values(r: &Record, last: &mut [u64; FIELDS], out: &mut Vec<u8>) {
    let fields = || (0..FIELDS).filter_map(|i| r.field(i).map(|v| (i, v)));
    let mut changed = 0_u64;
    for (bit, (i, v)) in fields().enumerate() {
        if last.get(i) != Some(&v) {
            changed |= 1 << bit;
        }
    }
    put(out, changed);
    for (i, v) in fields() {
        let Some(l) = last.get_mut(i) else { continue };
        if *l != v {
            put_signed(out, v.wrapping_sub(*l) as i64);
            *l = v;
        }
    }
}

/// Reads blocks of one segment, in their order.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The kind as a number: one of a later version is read over.
    tracks: Vec<Track<(u8, u16)>>,
    shapes: Vec<u32>,
}

impl Decoder {
    /// Reads a block into `out`. `None` where it is none of ours; then nothing behind it can be read either.
    pub(super) fn read(&mut self, body: &[u8], out: &mut Vec<Record>) -> Option<()> {
        let mut c = Cursor(body);
        let mut time = c.number()?;
        let mut expected = 0;
        let most = out.len().saturating_add(MAX_RECORDS);
        while !c.0.is_empty() {
            if out.len() >= most {
                return None;
            }
            let place = self.place(expected, &mut c)?;
            expected = place.checked_add(1)?;
            time = time.wrapping_add(c.signed()? as u64);
            let present = self.shape(&mut c)?;
            let track = self.tracks.get_mut(place)?;
            let mut changed = c.number()?;
            for (_, value) in track.values.iter_mut().enumerate().filter(|(i, _)| present & (1 << i) != 0) {
                if changed & 1 != 0 {
                    *value = value.wrapping_add(c.signed()? as u64);
                }
                changed >>= 1;
            }
            let (kind, slot) = track.of;
            if let Some(kind) = RecordKind::of(kind) {
                out.push(Record::of_parts(kind, slot, Moment(time), present, &track.values));
            }
        }
        Some(())
    }

    fn place(&mut self, expected: usize, c: &mut Cursor<'_>) -> Option<usize> {
        let place = (expected as i64).checked_add(c.signed()?)?;
        let place = usize::try_from(place).ok()?;
        if place == self.tracks.len() && place < MAX_TRACKS {
            let of = (c.byte()?, u16::try_from(c.number()?).ok()?);
            self.tracks.push(Track { of, values: [0; FIELDS] });
        }
        (place < self.tracks.len()).then_some(place)
    }

    fn shape(&mut self, c: &mut Cursor<'_>) -> Option<u32> {
        let n = usize::try_from(c.number()?).ok()?;
        if n == self.shapes.len() && n < MAX_SHAPES {
            let present = u32::try_from(c.number()?).ok().filter(|p| p >> FIELDS == 0)?;
            self.shapes.push(present);
        }
        self.shapes.get(n).copied()
    }
}
