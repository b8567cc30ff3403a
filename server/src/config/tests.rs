//! Knobs: their words, their limits, and which of them do not go together.

use super::*;

#[test]
fn only_loopback_without_the_flag() {
    let rows = [
        ("127.0.0.1:1", true),
        ("127.9.9.9:1", true),
        ("[::1]:1", true),
        ("0.0.0.0:1", false),
        ("[::]:1", false),
        ("10.0.0.1:1", false),
    ];
    for (address, fine) in rows {
        let address = address.parse().unwrap();
        assert_eq!(check_exposure(address, false).is_ok(), fine, "{address}");
        assert_eq!(check_exposure(address, true), Ok(()));
    }
    assert_eq!("off".parse(), Ok(Presence::Off));
    assert!("Off".parse::<Presence>().is_err());
}

#[test]
fn knobs_have_limits() {
    let fine = Config::default();
    assert_eq!(fine.check(), Ok(()));
    let faults: Rules = "drop=0.1".parse().unwrap();
    let data = Some(PathBuf::from("data"));
    let rows = [
        (Config { avatar_bytes: 0, ..fine.clone() }, false),
        (Config { avatar_bytes: AVATAR_BYTES_MAX, ..fine.clone() }, true),
        (Config { avatar_bytes: AVATAR_BYTES_MAX + 1, ..fine.clone() }, false),
        (Config { cpu_per_message: BURN_TIME_MAX, ..fine.clone() }, true),
        (Config { cpu_per_delivery: BURN_TIME_MAX * 2, ..fine.clone() }, false),
        (Config { deliveries_per_second: 1, ..fine.clone() }, true),
        (Config { deliveries_per_second: 1, faults: faults.clone(), ..fine.clone() }, false),
        (Config { encode: Encode::Receiver, flush: Flush::Message, ..fine.clone() }, true),
        (Config { encode: Encode::Receiver, faults: faults.clone(), ..fine.clone() }, false),
        (Config { flush: Flush::Message, faults, ..fine.clone() }, false),
        (Config { registration: false, data: data.clone(), ..fine.clone() }, true),
        (Config { registration: false, data, commit: Commit::Off, ..fine.clone() }, false),
        (Config { registration: false, ..fine }, false),
    ];
    for (config, is_fine) in rows {
        assert_eq!(config.check().is_ok(), is_fine, "{config:?}");
    }
    let words = ["eager", "lazy", "off"].map(|word| word.parse::<Avatars>().unwrap().word());
    assert_eq!(words, ["eager", "lazy", "off"]);
    assert!("on".parse::<Avatars>().is_err());
    let words = ["message", "group", "late", "off"];
    assert_eq!(words.map(|word| word.parse::<Commit>().unwrap().word()), words);
    assert!("on".parse::<Commit>().is_err());
    let words = ["once", "receiver"];
    assert_eq!(words.map(|word| word.parse::<Encode>().unwrap().word()), words);
    let words = ["epoll", "uring", "auto"];
    assert_eq!(words.map(|word| word.parse::<Io>().unwrap().word()), words);
    let words = ["turn", "message"];
    assert_eq!(words.map(|word| word.parse::<Flush>().unwrap().word()), words);
    assert!("on".parse::<Encode>().is_err() && "on".parse::<Flush>().is_err());
    let words = ["off", "low", "standard"];
    assert_eq!(words.map(|word| word.parse::<HashCost>().unwrap().word()), words);
    assert!("high".parse::<HashCost>().is_err());
}
