//! `throng targets`, `throng protocols` and `throng schema`: what there is.

use crate::cli::FolderArgs;
use crate::failure::Ending;
use crate::site;

/// Lists the targets with their knobs.
pub(crate) fn targets(args: &FolderArgs) -> Ending {
    let folders = site::folders(args.targets.as_deref(), None);
    for name in site::names(&folders) {
        let spec = site::find(&name, &folders)?;
        println!("{name}\n    {} (protocol {})", spec.about, spec.protocol);
        for (knob, facts) in &spec.knobs {
            let values = match facts.values.is_empty() {
                true => String::new(),
                false => format!(" ({})", facts.values.line()),
            };
            println!("    ?{knob}={}{values}  {}", facts.default, facts.about);
        }
    }
    Ok(0)
}

/// Lists the protocols with their verbs, features and options.
pub(crate) fn protocols() -> Ending {
    for protocol in protocols::PROTOCOLS {
        let facts = protocol.facts();
        let verbs: Vec<&str> = facts.verbs.iter().map(|verb| verb.name()).collect();
        println!("{}\n    {}", facts.name, facts.about);
        println!("    reached by {}://", facts.schemes.join("://, "));
        println!("    verbs: {}", verbs.join(", "));
        for (name, about) in facts.features {
            println!("    feature {name}: {about}");
        }
        for (name, about) in facts.options {
            println!("    option {name}: {about}");
        }
    }
    Ok(0)
}

/// Prints the JSON Schema of scenario files.
pub(crate) fn schema() -> Ending {
    println!("{:#}", model::scenario::schema());
    Ok(0)
}
