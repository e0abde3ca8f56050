//! The binary: hands the arguments to the library and its answer to the shell.

fn main() -> std::process::ExitCode {
    bootwright::main(std::env::args_os())
}
