//! Archives with one disk in them: an OVA (ustar), and Google's `disk.raw` (old GNU, also with holes).

use super::FileView;
use crate::disk::{DiskError, Extent, ExtentKind, GuestDisk, push_extent};

const BLOCK: u64 = 512;
/// An archive of a disk has a handful of members.
const MOST_MEMBERS: usize = 64;
/// Pieces that a sparse member may be in.
const MOST_PIECES: usize = 1 << 20;

/// A member of an archive.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) data: FileView,
    /// Of a member with holes: its full size, and its pieces (offset, length), one after the other in `data`.
    pub(crate) sparse: Option<(u64, Vec<(u64, u64)>)>,
}

/// The members of an archive, without reading their data.
pub(crate) fn members(view: &FileView) -> Result<Vec<Member>, DiskError> {
    let damaged = |offset: u64, expected: &str| DiskError::Damaged {
        what: "the archive",
        offset,
        expected: expected.to_owned(),
    };
    let mut members = Vec::new();
    let mut at = 0;
    while at + BLOCK <= view.len() {
        let header = view.read_up_to(at, 512)?;
        if header.iter().all(|b| *b == 0) {
            break;
        }
        if header.get(257..262) != Some(b"ustar") || members.len() >= MOST_MEMBERS {
            return Err(damaged(at, "a header of a tar archive with few members"));
        }
        let text = |range: std::ops::Range<usize>| {
            let bytes = header.get(range).unwrap_or_default();
            String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
        };
        let size =
            number(header.get(124..136).unwrap_or_default()).ok_or_else(|| damaged(at + 124, "a size"))?;
        let mut data_at = at + BLOCK;
        let mut sparse = None;
        if header.get(156) == Some(&b'S') {
            let full = number(header.get(483..495).unwrap_or_default())
                .ok_or_else(|| damaged(at + 483, "a size"))?;
            let mut pieces = Vec::new();
            read_pieces(header.get(386..482).unwrap_or_default(), &mut pieces);
            let mut more = header.get(482) == Some(&1);
            while more && pieces.len() < MOST_PIECES {
                let block = view.read_up_to(data_at, 512)?;
                if block.len() < 512 {
                    return Err(damaged(data_at, "the rest of a map of holes"));
                }
                read_pieces(block.get(..504).unwrap_or_default(), &mut pieces);
                more = block.get(504) == Some(&1);
                data_at += BLOCK;
            }
            check_pieces(&pieces, full, size).ok_or_else(|| damaged(at + 386, "a map of holes in order"))?;
            sparse = Some((full, pieces));
        }
        let data =
            view.piece(data_at, size).ok_or_else(|| damaged(at + 124, "a size that lies in the file"))?;
        members.push(Member { name: text(0..100), data, sparse });
        let padded = size.div_ceil(BLOCK).saturating_mul(BLOCK);
        at = data_at.saturating_add(padded);
    }
    Ok(members)
}

/// Octal, or big-endian behind a mark for sizes that octal cannot hold.
fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|b| b & 0x80 != 0) {
        let rest = field.get(field.len().checked_sub(8)?..)?;
        return Some(rest.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
    }
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

fn read_pieces(map: &[u8], pieces: &mut Vec<(u64, u64)>) {
    for entry in map.chunks_exact(24) {
        let (Some(offset), Some(length)) = (
            entry.get(..12).filter(|f| f.first() != Some(&0)).and_then(number),
            entry.get(12..).and_then(number),
        ) else {
            return;
        };
        pieces.push((offset, length));
    }
}

fn check_pieces(pieces: &[(u64, u64)], full: u64, stored: u64) -> Option<()> {
    let mut end = 0_u64;
    let mut total = 0_u64;
    for (offset, length) in pieces {
        if *offset < end {
            return None;
        }
        end = offset.checked_add(*length)?;
        total = total.checked_add(*length)?;
    }
    (end <= full && total <= stored).then_some(())
}

/// A raw disk in a member with holes.
pub(crate) struct SparseMember {
    view: FileView,
    size: u64,
    /// Offset on the disk, length, and place in the member.
    pieces: Vec<(u64, u64, u64)>,
}

impl SparseMember {
    pub(crate) fn new(view: FileView, size: u64, pieces: &[(u64, u64)]) -> Self {
        let mut place = 0;
        let pieces = pieces.iter().map(|(offset, length)| {
            let piece = (*offset, *length, place);
            place += length;
            piece
        });
        Self { pieces: pieces.collect(), view, size }
    }
}

impl GuestDisk for SparseMember {
    fn size(&self) -> u64 {
        self.size
    }

    fn extents(&self) -> Result<Vec<Extent>, DiskError> {
        let mut extents = Vec::new();
        let mut at = 0;
        for (start, length, _) in &self.pieces {
            push_extent(&mut extents, Extent { start: at, length: start - at, kind: ExtentKind::Hole });
            push_extent(&mut extents, Extent { start: *start, length: *length, kind: ExtentKind::Data });
            at = start + length;
        }
        push_extent(&mut extents, Extent { start: at, length: self.size - at, kind: ExtentKind::Hole });
        Ok(extents)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.size {
            return Err(DiskError::OutOfRange { offset, end, size: self.size });
        }
        buffer.fill(0);
        let first = self.pieces.partition_point(|(start, length, _)| start + length <= offset);
        for (start, length, place) in self.pieces.iter().skip(first).take_while(|(start, ..)| *start < end) {
            let (from, to) = ((*start).max(offset), (start + length).min(end));
            let range =
                usize::try_from(from - offset).unwrap_or(0)..usize::try_from(to - offset).unwrap_or(0);
            if let Some(part) = buffer.get_mut(range) {
                self.view.read_exact_at(part, place + (from - start))?;
            }
        }
        Ok(())
    }
}
