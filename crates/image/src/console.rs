//! Consoles of platforms: kernel arguments and GRUB commands.
//!
//! An image carries its own table as `coreos/platforms.json` on the boot filesystem (fedora-coreos-config
//! `platforms.yaml`, its architecture's part). Images from before that table existed get the built-in one, which is the
//! table as fedora-coreos-config published it in October 2024.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The consoles of one platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct PlatformConsole {
    /// Commands for GRUB.
    pub grub_commands: Vec<String>,
    /// Arguments for the kernel.
    pub kernel_arguments: Vec<String>,
}

/// The consoles of all platforms, for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consoles {
    platforms: BTreeMap<String, PlatformConsole>,
    /// Where the table is from.
    pub source: &'static str,
}

const SERIAL: [&str; 3] =
    ["serial --speed=115200", "terminal_input serial console", "terminal_output serial console"];

impl Consoles {
    /// Reads the table of an image.
    pub fn read(text: &[u8]) -> Option<Self> {
        let mut platforms: BTreeMap<String, PlatformConsole> = serde_json::from_slice(text).ok()?;
        // The kernel takes words: an argument with a space would be two, which no later stamp could take off again.
        for console in platforms.values_mut() {
            let words = console.kernel_arguments.iter().flat_map(|argument| argument.split_whitespace());
            console.kernel_arguments = words.map(str::to_owned).collect();
        }
        Some(Self { platforms, source: "coreos/platforms.json of the image" })
    }

    /// The built-in table of an architecture; empty for those that have no consoles.
    pub fn built_in(architecture: &str) -> Self {
        let mut platforms = BTreeMap::new();
        let mut add = |names: &[&str], arguments: &[&str], grub: &[&str]| {
            for name in names {
                let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
                let console =
                    PlatformConsole { grub_commands: owned(grub), kernel_arguments: owned(arguments) };
                platforms.insert((*name).to_owned(), console);
            }
        };
        match architecture {
            "x86_64" => {
                let graphical_first = ["console=tty0", "console=ttyS0,115200n8"];
                add(&["aws", "gcp", "ibmcloud", "qemu"], &graphical_first, &SERIAL);
                add(&["azure"], &graphical_first, &[]);
                let serial_first = ["console=ttyS0,115200n8", "console=tty0"];
                add(&["kubevirt", "openstack", "vmware", "virtualbox"], &serial_first, &[]);
                let unit = ["serial --unit=1 --speed=115200", SERIAL[1], SERIAL[2]];
                add(&["packet"], &["console=ttyS1,115200n8"], &unit);
            }
            "aarch64" => {
                let efi = ["serial efi0", SERIAL[1], SERIAL[2]];
                add(&["aws"], &["console=ttyS0,115200n8"], &efi);
                add(&["azure"], &["console=tty0", "console=ttyAMA0,115200n8"], &[]);
                add(&["openstack"], &["console=ttyAMA0,115200n8", "console=tty0"], &[]);
                add(&["packet"], &["console=ttyAMA0,115200"], &[]);
                add(&["qemu"], &[], &SERIAL);
            }
            "ppc64le" => add(&["openstack", "qemu"], &["console=hvc0", "console=tty0"], &[]),
            _ => {}
        }
        Self { platforms, source: "the built-in table (fedora-coreos-config platforms.yaml)" }
    }

    /// The consoles of a platform; none for metal and every platform that the table does not list.
    pub fn of(&self, platform: &str) -> PlatformConsole {
        self.platforms.get(platform).cloned().unwrap_or_default()
    }
}

impl PlatformConsole {
    /// Consoles of the user's own, as `ttyS0,115200n8` or `tty0` (coreos-installer `src/install.rs` derives the same).
    pub fn custom(consoles: &[String]) -> Self {
        let mut grub_commands = Vec::new();
        for console in consoles {
            let (device, options) = console.split_once(',').unwrap_or((console, ""));
            let Some(unit) = device.strip_prefix("ttyS").filter(|unit| unit.parse::<u8>().is_ok()) else {
                continue;
            };
            let speed: String = options.chars().take_while(char::is_ascii_digit).collect();
            let speed = if speed.is_empty() { "9600" } else { &speed };
            grub_commands = vec![
                format!("serial --unit={unit} --speed={speed}"),
                "terminal_input serial console".to_owned(),
                "terminal_output serial console".to_owned(),
            ];
        }
        Self { grub_commands, kernel_arguments: consoles.iter().map(|c| format!("console={c}")).collect() }
    }
}
