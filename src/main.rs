//! The `stacklift` program.

fn main() -> std::process::ExitCode {
    stacklift::main()
}
