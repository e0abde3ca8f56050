//! The console commands of GRUB, between their markers in `grub2/console.cfg`, or in `grub2/grub.cfg` of older images
//! (coreos-assembler `src/gf-set-platform`, coreos-installer `src/install.rs`).

use super::StampError;
use crate::ext4::{Ext4, Ext4Error};

const START: &str = "# CONSOLE-SETTINGS-START";
const END: &str = "# CONSOLE-SETTINGS-END";

/// Writes the commands between the markers. Images from before there were any need none, as long as there is nothing to
/// write.
pub(super) fn restamp(ext4: &mut Ext4<'_>, commands: &[String]) -> Result<(), StampError> {
    for path in ["grub2/console.cfg", "grub2/grub.cfg"] {
        let text = match ext4.read_file(path) {
            Ok(text) => text,
            Err(Ext4Error::NoFile(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        match rewritten(&text, commands) {
            Some(new) if new == text => return Ok(()),
            Some(new) => return Ok(ext4.replace_file(path, &new)?),
            None if path.ends_with("console.cfg") => return Err(StampError::NoConsoleBlock(path)),
            None => {}
        }
    }
    if commands.is_empty() { Ok(()) } else { Err(StampError::NoConsoleBlock("grub2/grub.cfg")) }
}

/// The text with other commands between the markers; none where they are missing.
fn rewritten(text: &[u8], commands: &[String]) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let is = |line: &&[u8], marker: &str| std::str::from_utf8(line).is_ok_and(|l| l.trim() == marker);
    let start = lines.iter().position(|line| is(line, START))?;
    let end = start + lines.iter().skip(start).position(|line| is(line, END))?;
    let mut new: Vec<u8> = lines.iter().take(start + 1).flat_map(|l| l.iter().copied()).collect();
    for command in commands {
        new.extend_from_slice(command.as_bytes());
        new.push(b'\n');
    }
    new.extend(lines.iter().skip(end).flat_map(|l| l.iter().copied()));
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let text = b"set x=1\n# CONSOLE-SETTINGS-START\nserial old\n# CONSOLE-SETTINGS-END\nblscfg\n";
        let commands = vec!["serial --speed=115200".to_owned(), "terminal_input serial console".to_owned()];
        let new = rewritten(text, &commands).unwrap();
        assert_eq!(new, b"set x=1\n# CONSOLE-SETTINGS-START\nserial --speed=115200\nterminal_input serial console\n# CONSOLE-SETTINGS-END\nblscfg\n");
        assert_eq!(
            rewritten(&new, &[]).unwrap(),
            b"set x=1\n# CONSOLE-SETTINGS-START\n# CONSOLE-SETTINGS-END\nblscfg\n"
        );
        assert_eq!(rewritten(b"no markers\n", &commands), None);
    }
}
