//! One file a command.

pub(crate) mod apply;
pub(crate) mod completion;
pub(crate) mod explain;
pub(crate) mod identify;
pub(crate) mod image_convert;
pub(crate) mod image_inspect;
pub(crate) mod image_stamp;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod release_diff;
pub(crate) mod release_import;
pub(crate) mod release_lint;
pub(crate) mod release_show;
