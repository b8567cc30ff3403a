//! The binary: arguments, wiring, terminal.

mod cli;
mod command;
mod failure;
mod governed;
mod host;
mod lab;
mod load;
mod metrics;
mod occupant;
mod progress;
mod settings;
mod site;
mod suite;
mod trial;

use cli::{Cli, Command};
use std::process::ExitCode;

/// What the command line asks for; if that is help, or makes no sense, this is the end.
fn command() -> Command {
    match Cli::read(Cli::grammar(), std::env::args_os()) {
        Ok(cli) => cli.command,
        Err(error) => {
            if let Some(variable) = cli::variable_of(&error) {
                eprintln!("throng: the variable {variable} of the environment makes no sense");
            }
            error.exit()
        }
    }
}

fn main() -> ExitCode {
    let result = match command() {
        Command::Run(args) => command::run::run(&args),
        Command::Capacity(args) => command::capacity::capacity(&args),
        Command::Compare(args) => command::compare::compare(&args),
        Command::Ablate(args) => command::ablate::ablate(&args),
        Command::Sweep(args) => command::sweep::sweep(&args),
        Command::Plan(args) => command::plan::plan(&args),
        Command::Check(args) => command::check::check(&args),
        Command::Report(args) => command::report::report(&args),
        Command::Serve(args) => command::serve::serve(*args),
        Command::Targets(args) => command::list::targets(&args),
        Command::Protocols => command::list::protocols(),
        Command::Schema => command::list::schema(),
        Command::Worker => command::run::worker(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{}", failure.message.trim_end());
            ExitCode::from(failure.code)
        }
    }
}
