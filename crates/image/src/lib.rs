//! CoreOS disk images: read whatever container they come in, inspect, stamp for a platform, write in any format.
//!
//! ```text
//! file ──open──▶ container (qcow2, vmdk, vhd, raw, inside gz, xz, zst, OVA, tar)
//!                   └─▶ GuestDisk: size, extents (data, zero, hole), bytes at offsets
//!                          ├─ inspect: partitions, boot entries, platform
//!                          ├─ stamp ──▶ Delta: (offset, bytes) on the guest disk
//!                          └─ Stamped (disk + delta) ──write──▶ raw, qcow2, vmdk, ova, vhd, gcp, containerdisk
//! ```
//!
//! Nothing above [`GuestDisk`] knows the container. Work runs on threads with bounded memory; there is no network here.

mod console;
mod delta;
mod disk;
mod edit;
mod ext4;
mod format;
mod gpt;
mod hash;
mod inspect;
mod kind;
mod open;
mod stamp;
mod write;

pub use console::{Consoles, PlatformConsole};
pub use delta::{Delta, Piece, Stamped};
pub use disk::{Codec, DiskError, Extent, ExtentKind, GuestDisk};
pub use edit::{EditError, clone_with, edit_in_place, recover};
pub use ext4::Ext4Error;
pub use format::Container;
pub use gpt::{GptError, Partition, PartitionTable};
pub use hash::Sha256Hex;
pub use inspect::{BootEntry, Inspection, inspect};
pub use kind::FileKind;
pub use open::{Compression, OpenError, Opened, open};
pub use stamp::{StampError, StampOptions, stamp};
pub use write::{ClusterCompression, Format, WriteError, disk_size_of_platform, write_file, write_pipe};
