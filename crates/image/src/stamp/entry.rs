//! A boot entry (Boot Loader Specification): its line of options.

use super::StampError;

const PLATFORM: &str = "ignition.platform.id=";
/// The key of the images of 2018 and early 2019.
const OLD_PLATFORM: &str = "coreos.oem.id=";

/// A boot entry, taken apart at its line of options. All other bytes stay as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    before: Vec<u8>,
    /// `options` and the space behind it.
    key: String,
    words: Vec<String>,
    after: Vec<u8>,
    kernel: Option<String>,
}

impl Options {
    /// Reads an entry; `path` is for messages.
    pub(crate) fn read(path: &str, text: &[u8]) -> Result<Self, StampError> {
        let count = |count| StampError::Options { entry: path.to_owned(), count };
        let is_options = |line: &[u8]| {
            line.strip_prefix(b"options")
                .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_whitespace))
        };
        let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        let places: Vec<usize> =
            lines.iter().enumerate().filter(|(_, l)| is_options(l)).map(|(n, _)| n).collect();
        let [place] = places.as_slice() else { return Err(count(places.len())) };
        let line = lines.get(*place).copied().unwrap_or_default();
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let body = std::str::from_utf8(body).map_err(|_| count(0))?;
        let rest = body.trim_start_matches("options").trim_start();
        let key = body.get(..body.len() - rest.len()).unwrap_or("options ").to_owned();
        let kernel =
            lines.iter().find_map(|l| std::str::from_utf8(l).ok()?.strip_prefix("linux")).map(str::trim);
        let mut after: Vec<u8> = lines.iter().skip(place + 1).flat_map(|l| l.iter().copied()).collect();
        if line.ends_with(b"\n") {
            after.insert(0, b'\n');
        }
        Ok(Self {
            before: lines.iter().take(*place).flat_map(|l| l.iter().copied()).collect(),
            key,
            words: rest.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect(),
            after,
            kernel: kernel.map(str::to_owned),
        })
    }

    /// The words of the command line.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The platform id.
    pub(crate) fn platform(&self) -> Option<&str> {
        self.words.iter().find_map(|w| w.strip_prefix(PLATFORM).or_else(|| w.strip_prefix(OLD_PLATFORM)))
    }

    /// The architecture in the kernel's name: `vmlinuz-5.14.0-427.el9.x86_64`.
    pub(crate) fn architecture(&self) -> Option<String> {
        let name = self.kernel.as_ref()?.rsplit('/').next()?;
        let known = ["x86_64", "aarch64", "ppc64le", "s390x", "riscv64"];
        known.into_iter().find(|arch| name.ends_with(arch)).map(str::to_owned)
    }

    /// Takes the old platform's words off, and puts the new ones at the end. `$ignition_firstboot` is a variable of
    /// GRUB and stays where it is.
    pub(crate) fn restamp(&mut self, platform: &str, old: &[String], new: &[String], extra: &[String]) {
        // Images of the old key get the old key.
        let key =
            if self.words.iter().any(|w| w.starts_with(OLD_PLATFORM)) { OLD_PLATFORM } else { PLATFORM };
        self.words.retain(|w| !w.starts_with(PLATFORM) && !w.starts_with(OLD_PLATFORM) && !old.contains(w));
        self.words.push(format!("{key}{platform}"));
        // An argument that stands already is not said twice.
        let further: Vec<String> =
            new.iter().chain(extra).filter(|w| !self.words.contains(w)).cloned().collect();
        self.words.extend(further);
    }

    /// The entry's new text.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = self.before.clone();
        text.extend_from_slice(self.key.as_bytes());
        text.extend_from_slice(self.words.join(" ").as_bytes());
        text.extend_from_slice(&self.after);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "title Red Hat Enterprise Linux CoreOS\nversion 1\noptions rw $ignition_firstboot ostree=/ostree/boot.1/rhcos/abc/0 ignition.platform.id=metal\nlinux /ostree/rhcos-abc/vmlinuz-5.14.0-427.el9.x86_64\ninitrd /x.img\n";

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn the_line_is_that_of_a_published_image() {
        let mut entry = Options::read("e", ENTRY.as_bytes()).unwrap();
        assert_eq!((entry.platform(), entry.architecture().as_deref()), (Some("metal"), Some("x86_64")));
        entry.restamp("openstack", &[], &words(&["console=ttyS0,115200n8", "console=tty0"]), &[]);
        let expected = ENTRY.replace("=metal", "=openstack console=ttyS0,115200n8 console=tty0");
        assert_eq!(String::from_utf8(entry.text()).unwrap(), expected);
        entry.restamp("metal", &words(&["console=ttyS0,115200n8", "console=tty0"]), &[], &[]);
        assert_eq!(entry.text(), ENTRY.as_bytes(), "and back");
    }

    #[test]
    fn ids_with_marks_leave_no_tail_and_old_keys_stay() {
        let old = "options quiet coreos.oem.id=my-own_id rw";
        let mut entry = Options::read("e", old.as_bytes()).unwrap();
        entry.restamp("aws", &[], &[], &words(&["debug"]));
        assert_eq!(entry.text(), b"options quiet rw coreos.oem.id=aws debug");
    }

    #[test]
    fn no_options_and_two_are_refused() {
        for (text, count) in [("title x\n", 0), ("options a\noptions b\n", 2), ("optionsx y\n", 0)] {
            assert!(
                matches!(Options::read("e", text.as_bytes()), Err(StampError::Options { count: c, .. }) if c == count),
                "{text}"
            );
        }
    }
}
