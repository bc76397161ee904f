//! Parse, run, exit code.

fn main() -> std::process::ExitCode {
    stacklift::main()
}
