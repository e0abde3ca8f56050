//! What stamping changes: a list of (offset, bytes) on the guest disk, and a disk seen through it.

use serde::{Deserialize, Serialize};

use crate::disk::{Codec, DiskError, Extent, ExtentKind, GuestDisk, push_extent};

/// A change of the guest disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The pieces, in order, without overlap.
    pub pieces: Vec<Piece>,
}

/// One piece of a delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece {
    /// Offset on the guest disk, in bytes.
    pub offset: u64,
    /// The new bytes; in JSON as hex.
    #[serde(with = "hex")]
    pub bytes: Vec<u8>,
    /// The bytes that stood there, so that the delta is applied to the right disk alone; in JSON as hex.
    #[serde(with = "hex")]
    pub before: Vec<u8>,
}

impl Delta {
    /// The number of bytes that change.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.bytes.len()).sum()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds what differs between two blocks at an offset.
    pub(crate) fn add_block(&mut self, offset: u64, before: &[u8], after: &[u8]) {
        // Differences that lie near each other are one piece.
        const NEAR: usize = 16;
        let mut differs =
            before.iter().zip(after).enumerate().filter(|(_, (a, b))| a != b).map(|(n, _)| n).peekable();
        while let Some(start) = differs.next() {
            let mut end = start + 1;
            while let Some(next) = differs.next_if(|n| *n < end + NEAR) {
                end = next + 1;
            }
            let piece = |bytes: &[u8]| bytes.get(start..end).unwrap_or_default().to_vec();
            self.pieces.push(Piece {
                offset: offset + start as u64,
                bytes: piece(after),
                before: piece(before),
            });
        }
    }

    /// Puts pieces in order.
    pub(crate) fn sort(&mut self) {
        self.pieces.sort_by_key(|p| p.offset);
    }

    /// Writes the delta over a buffer that was read from an offset.
    fn overlay(&self, offset: u64, buffer: &mut [u8]) {
        let end = offset + buffer.len() as u64;
        let first = self.pieces.partition_point(|p| p.offset + p.bytes.len() as u64 <= offset);
        for piece in self.pieces.iter().skip(first).take_while(|p| p.offset < end) {
            for (n, byte) in piece.bytes.iter().enumerate() {
                let at = piece.offset + n as u64;
                let place = at.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
                if let Some(place) = place.and_then(|at| buffer.get_mut(at)) {
                    *place = *byte;
                }
            }
        }
    }
}

/// A disk seen through a delta, and grown with a hole at its end.
pub struct Stamped<'d> {
    disk: &'d dyn GuestDisk,
    delta: &'d Delta,
    size: u64,
}

impl<'d> Stamped<'d> {
    /// Lays a delta over a disk. A smaller size than the disk's is not taken.
    pub fn new(disk: &'d dyn GuestDisk, delta: &'d Delta, size: Option<u64>) -> Self {
        Self { disk, delta, size: size.unwrap_or(0).max(disk.size()) }
    }
}

impl GuestDisk for Stamped<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        let mut extents = Vec::new();
        for extent in self.disk.extents()? {
            // A piece in a hole makes data of it.
            let (mut at, end) = (extent.start, extent.start + extent.length);
            if extent.kind != ExtentKind::Data {
                for piece in &self.delta.pieces {
                    let from = piece.offset.max(at);
                    let to = (piece.offset + piece.bytes.len() as u64).min(end);
                    if from < to {
                        push_extent(&mut extents, Extent { start: at, length: from - at, kind: extent.kind });
                        push_extent(
                            &mut extents,
                            Extent { start: from, length: to - from, kind: ExtentKind::Data },
                        );
                        at = to;
                    }
                }
            }
            push_extent(&mut extents, Extent { start: at, length: end - at, kind: extent.kind });
        }
        let own = self.disk.size();
        push_extent(&mut extents, Extent { start: own, length: self.size - own, kind: ExtentKind::Hole });
        Ok(extents)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.size {
            return Err(DiskError::OutOfRange { offset, end, size: self.size });
        }
        let inside = self.disk.size().saturating_sub(offset).min(buffer.len() as u64);
        let inside = usize::try_from(inside).unwrap_or(buffer.len());
        let (own, grown) = buffer.split_at_mut(inside);
        if !own.is_empty() {
            self.disk.read_at(offset, own)?;
        }
        grown.fill(0);
        self.delta.overlay(offset, buffer);
        Ok(())
    }

    fn packed(&self, offset: u64, length: u64, codec: Codec) -> Result<Option<Vec<u8>>, DiskError> {
        let end = offset.saturating_add(length);
        let touched =
            self.delta.pieces.iter().any(|p| p.offset < end && p.offset + p.bytes.len() as u64 > offset);
        if touched || end > self.disk.size() {
            return Ok(None);
        }
        self.disk.packed(offset, length, codec)
    }
}

mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&crate::hash::hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes().chunks(2).map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .filter(|p| p.len() == 2)
                .and_then(|p| u8::from_str_radix(p, 16).ok())
        });
        digits.collect::<Option<Vec<u8>>>().ok_or_else(|| D::Error::custom("expected bytes as hex"))
    }
}
