//! The page of the yardstick in a real browser: people who talk, are away, come back, and stand in
//! a crowd.

use crate::browser::{Browser, Page};
use crate::rig::{Folder, Started, wait_until};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const WIDE: (u32, u32) = (1400, 900);
const NARROW: (u32, u32) = (360, 740);
/// Most rows the page may have, however much is said (`SHOWN_MAX` in room.js).
const ROWS_MAX: u64 = 600;
const ENTER: u32 = 13;
/// All texts of the log, top down, each with its number and sender.
const TEXTS: &str = "[...document.querySelectorAll('#log .message')].map((row) => \
    row.dataset.number + ' ' + row.querySelector('.sender').textContent + ': ' + \
    row.querySelector('.text').textContent)";

/// Logs in through the form and waits for the room.
fn enter<'b>(browser: &'b Browser, at: &str, size: (u32, u32), name: &str) -> Page<'b> {
    let page = browser.open(&format!("http://{at}/#lobby"), size);
    page.wait("!document.querySelector('#door').hidden");
    page.write("#name", name);
    page.write("#password", "a word");
    page.press("Enter", ENTER);
    page.wait("document.querySelector('#people-number').textContent > 0");
    page
}

fn say(page: &Page<'_>, text: &str) {
    page.write("#text", text);
    page.press("Enter", ENTER);
}

fn wait_for(page: &Page<'_>, text: &str) {
    page.wait(&format!("{TEXTS}.some((said) => said.endsWith({}))", json!(text)));
}

fn texts(page: &Page<'_>) -> Vec<String> {
    serde_json::from_value(page.value(TEXTS)).unwrap()
}

fn yardstick() -> server::Handle {
    server::spawn(server::Config::default(), crate::rig::listener()).unwrap()
}

#[test]
fn people_talk_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let server = yardstick();
    let at = server.address().to_string();
    let ann = enter(&browser, &at, WIDE, "ann");
    let bob = enter(&browser, &at, NARROW, "bob");
    ann.wait("document.querySelector('#people-list [data-name=bob]')");
    ann.wait("document.querySelector('#people-number').textContent === '2'");

    say(&ann, "hello bob");
    wait_for(&bob, "1 ann: hello bob");
    ann.wait("document.querySelector('.readers')?.textContent === 'read by bob'");
    bob.write("#text", "I am typ");
    ann.wait("document.querySelector('#typing').textContent === 'bob is typing…'");

    let hostile = "<img src=x onerror=hacked=1> <script>hacked=1</script> &lt;b&gt; \"'`";
    say(&bob, hostile);
    wait_for(&ann, hostile);
    ann.wait("document.querySelector('#typing').textContent === ''");
    say(&bob, "  two\nlines  ");
    wait_for(&ann, "two\nlines  ");
    let expect = ["1 ann: hello bob", &format!("2 bob: {hostile}"), "3 bob:   two\nlines  "];
    for page in [&ann, &bob] {
        wait_for(page, "two\nlines  ");
        assert_eq!(texts(page), expect);
        assert_eq!(page.value("typeof hacked"), "undefined");
        assert_eq!(page.value("document.querySelectorAll('#log script, #log img').length"), 0);
    }
    let own = "[...document.querySelectorAll('.own .text')].map((text) => text.textContent)";
    assert_eq!(ann.value(own), json!(["hello bob"]));

    // In another room, what is said in the first one is counted.
    ann.write("#join-room", "den");
    ann.press("Enter", ENTER);
    ann.wait("document.querySelector('#title').textContent === 'den'");
    ann.wait("document.querySelector('#people-number').textContent === '1'");
    assert_eq!(texts(&ann), [""; 0]);
    say(&bob, "are you there?");
    ann.wait("document.querySelector('[data-place=lobby] .badge').textContent === '1'");
    assert!(ann.text("document.title").starts_with("(1) den"));
    ann.click("[data-place=lobby]");
    wait_for(&ann, "4 bob: are you there?");
    assert_eq!(texts(&ann).len(), 4);
    ann.wait("document.title.startsWith('lobby')");

    // Loaded anew, the tab knows who it is; after a logout it does not.
    ann.reload();
    ann.wait("document.querySelector('#self-name').textContent === 'ann'");
    wait_for(&ann, "4 bob: are you there?");
    ann.click("#logout");
    ann.wait("!document.querySelector('#door').hidden && sessionStorage.length === 0");
    bob.wait("document.querySelector('#people-number').textContent === '1'");
    for page in [&ann, &bob] {
        assert_eq!(page.troubles(), [""; 0]);
    }
}

#[test]
fn a_wrong_password_is_told_and_pictures_are_seen() {
    let Some(browser) = Browser::start() else { return };
    let config =
        server::Config { avatars: server::Avatars::Eager, avatar_bytes: 100, ..Default::default() };
    let server = server::spawn(config, crate::rig::listener()).unwrap();
    let at = server.address().to_string();
    let ann = enter(&browser, &at, WIDE, "ann");
    let page = browser.open(&format!("http://{at}/"), WIDE);
    page.wait("!document.querySelector('#door').hidden");
    page.write("#name", "ann");
    page.write("#password", "another word");
    page.press("Enter", ENTER);
    page.wait("document.querySelector('#login-error').textContent !== ''");
    assert_eq!(page.value("document.querySelector('#hall').hidden"), true);

    let bob = enter(&browser, &at, WIDE, "bob");
    let hue = "getComputedStyle(document.querySelector('[data-name=ann] .face'))\
        .getPropertyValue('--one')";
    // The picture is noise of a known hash, so everybody sees the same.
    let seen = bob.text(hue);
    ann.wait(&format!("{hue} === {}", json!(seen)));
    for page in [&ann, &bob, &page] {
        assert_eq!(page.troubles(), [""; 0]);
    }
}

/// Stands between a browser and a server that may be away, or another one.
struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<Towards>>,
}

#[derive(Default)]
struct Towards {
    target: Option<String>,
    streams: Vec<TcpStream>,
    is_over: bool,
}

impl Relay {
    fn start(target: &str) -> Relay {
        let listener = crate::rig::listener();
        let address = listener.local_addr().unwrap();
        let state = Towards { target: Some(target.to_owned()), ..Towards::default() };
        let relay = Relay { address, state: Arc::new(Mutex::new(state)) };
        let state = relay.state.clone();
        std::thread::spawn(move || accept(&listener, &state));
        relay
    }

    /// From now on connections go there; without a target those that stand are cut.
    fn point(&self, target: Option<&str>) {
        let mut state = self.state.lock().unwrap();
        state.target = target.map(str::to_owned);
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.point(None);
        self.state.lock().unwrap().is_over = true;
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, state: &Mutex<Towards>) {
    for stream in listener.incoming() {
        let mut state = state.lock().unwrap();
        if state.is_over {
            return;
        }
        let Some(target) = &state.target else { continue };
        let (Ok(near), Ok(far)) = (stream, TcpStream::connect(target)) else { continue };
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            std::thread::spawn(move || {
                // The end of one direction is passed on; a cut ends both.
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
        state.streams.extend([near, far]);
    }
}

fn serve(folder: &Folder) -> (Started, String) {
    let words = ["serve", "--listen", "127.0.0.1:0", "--data", "data", "--hash-cost", "low"];
    let server = folder.start(words);
    wait_until("the server listens", || server.stderr().contains("/ws\n"));
    let stderr = server.stderr();
    let (_, rest) = stderr.split_once("ws://").unwrap();
    let address = rest.split('/').next().unwrap().to_owned();
    (server, address)
}

#[test]
fn what_was_missed_comes_once_when_the_server_is_back() {
    let Some(browser) = Browser::start() else { return };
    let folder = Folder::new("web");
    let (server, address) = serve(&folder);
    let relay = Relay::start(&address);
    let ann = enter(&browser, &relay.address.to_string(), WIDE, "ann");
    let bob = enter(&browser, &address, WIDE, "bob");
    say(&ann, "one");
    wait_for(&bob, "1 ann: one");
    say(&bob, "two");
    wait_for(&ann, "2 bob: two");
    bob.close();

    relay.point(None);
    server.signal(libc::SIGKILL);
    server.end();
    ann.wait("!document.querySelector('#banner').hidden");
    assert_eq!(ann.text("document.querySelector('#link').textContent"), "offline");
    say(&ann, "said while away");
    let (server, address) = serve(&folder);
    let bob = enter(&browser, &address, WIDE, "bob");
    wait_for(&bob, "2 bob: two");
    for text in ["three", "four"] {
        say(&bob, text);
    }
    wait_for(&bob, "4 bob: four");

    relay.point(Some(&address));
    ann.click("#banner-now");
    let expect =
        ["1 ann: one", "2 bob: two", "3 bob: three", "4 bob: four", "5 ann: said while away"];
    for page in [&ann, &bob] {
        wait_for(page, "5 ann: said while away");
        assert_eq!(texts(page), expect);
    }
    ann.wait("document.querySelector('#outbox').children.length === 0");
    ann.wait("document.querySelector('#banner').hidden");
    // A cut in the middle of a conversation, with the server going on.
    relay.point(Some(&address));
    ann.wait("document.querySelector('#link').textContent === 'online'");
    say(&bob, "six");
    wait_for(&ann, "6 bob: six");
    assert_eq!(texts(&ann).len(), 6);
    let other = |trouble: &String| !trouble.contains("WebSocket connection to");
    let troubles: Vec<String> = ann.troubles().into_iter().filter(other).collect();
    assert_eq!(troubles, [""; 0]);
    server.signal(libc::SIGTERM);
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn a_crowd_does_not_stop_the_page() {
    let Some(browser) = Browser::start() else { return };
    let config = server::Config { history: 20_000, ..server::Config::default() };
    let server = server::spawn(config, crate::rig::listener()).unwrap();
    let page = enter(&browser, &server.address().to_string(), WIDE, "ann");
    let folder = Folder::new("crowd");
    let scenario = crate::rig::at(&server, "proto")
        + "about: a crowd that the page stands in\n\
           rooms: [lobby]\n\
           crowds:\n\
           \x20 people:\n\
           \x20   size: 20\n\
           \x20   journey: [login, join: lobby, talk: {every: 30ms, for: 10m}, leave]\n\
           timeline: [run: people at 100/s]\n";
    let crowd = folder.start_run(&scenario, &[]);
    page.wait("!document.querySelector('#rate').hidden");
    page.wait("/^[\\d,]+ messages\\/s$/.test(document.querySelector('#rate').textContent)");
    page.wait("document.querySelector('#log').getAttribute('aria-live') === 'off'");
    page.wait("document.querySelectorAll('.message').length > 300");
    page.turn_wheel(-500);
    page.wait("/^↓ [\\d,]+ new$/.test(document.querySelector('#jump').textContent)");
    // The reader's place is left alone while more is said, once the wheel has come to rest.
    page.wait(
        "(() => {
            const top = document.querySelector('#log').scrollTop;
            if (window.restsAt !== top) [window.restsAt, window.restsSince] = [top, Date.now()];
            return Date.now() - window.restsSince > 700;
        })()",
    );
    let top = page.value("document.querySelector('#log').scrollTop");
    let words = page.text("document.querySelector('#jump').textContent");
    let other = format!("document.querySelector('#jump').textContent !== {}", json!(words));
    page.wait(&other);
    assert_eq!(page.value("document.querySelector('#log').scrollTop"), top);
    page.click("#jump");
    page.wait("document.querySelector('#jump').hidden");

    // Whether the machine was fit to measure is not the question here.
    page.wait("parseInt(document.querySelector('.message:last-child').dataset.number) > 1200");
    crowd.signal(libc::SIGINT);
    crowd.end();
    let metrics = get(&server.address().to_string(), "/metrics");
    let (_, rest) = metrics.split_once("\nyardstick_messages_total ").expect(&metrics);
    let said: u64 = rest.lines().next().unwrap().parse().unwrap();
    assert!(said > 1_000, "{said} messages");
    page.wait(&format!("document.querySelector('.message:last-child').dataset.number == {said}"));
    let rows = "document.querySelectorAll('.message').length";
    assert!(page.value(rows).as_u64().unwrap() <= ROWS_MAX);
    // To the beginning, page by page.
    let first = "document.querySelector('.message').dataset.number";
    page.wait(&format!("document.querySelector('#log').scrollTop = 0, {first} === '1'"));
    assert!(page.value(rows).as_u64().unwrap() <= ROWS_MAX);
    let no_gap = "[...document.querySelectorAll('.message')].every((row, at) => \
        +row.dataset.number === at + 1)";
    assert_eq!(page.value(no_gap), true);
    // And back, page by page.
    page.wait(&format!(
        "document.querySelector('#log').scrollTop = 1e6, \
         document.querySelector('.message:last-child').dataset.number == {said}"
    ));
    page.wait("document.querySelector('#jump').hidden");
    assert_eq!(page.troubles(), [""; 0]);
}

/// What every page must keep: names for what can be used, contrast for what can be read, no window
/// too narrow. Gives what is wrong.
const HOUSE_RULES: &str = r"(() => {
  const wrong = [];
  const isShown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push('twice: ' + id);
  if (!document.documentElement.lang) wrong.push('no language');
  const wide = [...document.querySelectorAll('*')].filter((e) => isShown(e) &&
    e.getBoundingClientRect().right > innerWidth + 1 && e.getBoundingClientRect().width > 2);
  for (const e of wide) wrong.push('beyond the window: ' + e.outerHTML.slice(0, 90));
  const color = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = color(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll('body *')) {
    const words = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!words || !isShown(e) || e.closest('.face, .unseen, :disabled')) continue;
    const [a, b] = [color(getComputedStyle(e).color), ground(e)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.push('contrast ' + ratio.toFixed(2) + ': ' + e.outerHTML.slice(0, 90));
  }
  return wrong;
})()";

#[test]
fn the_page_can_be_used_by_everybody() {
    let Some(browser) = Browser::start() else { return };
    let server = yardstick();
    let page = enter(&browser, &server.address().to_string(), WIDE, "ann");
    say(&page, "hello");
    wait_for(&page, "hello");
    let door = browser.open(&format!("http://{}/", server.address()), NARROW);
    door.wait("!document.querySelector('#door').hidden");
    let roles = ["textbox", "searchbox", "button", "checkbox", "combobox", "spinbutton", "dialog"];
    let check = |page: &Page<'_>, what: &str| {
        for size in [WIDE, NARROW] {
            page.resize(size);
            for scheme in ["light", "dark"] {
                page.prefer(scheme);
                let wrong = page.value(HOUSE_RULES);
                assert_eq!(wrong, json!([]), "{what}, {size:?}, {scheme}");
            }
            let tree = page.ask("Accessibility.getFullAXTree", json!({}));
            let nodes = tree["nodes"].as_array().unwrap();
            let used = nodes.iter().filter(|node| {
                let is_used = roles.iter().any(|role| node["role"]["value"] == *role);
                is_used && node["ignored"] != true
            });
            assert!(used.clone().count() >= 3, "{what}: {tree}");
            for node in used {
                assert_ne!(node["name"]["value"], "", "{what}: {node}");
            }
        }
    };
    check(&door, "the door");
    check(&page, "the hall");
    page.resize(WIDE);
    page.click("#create-open");
    check(&page, "a new room");
    page.press("Escape", 27);
    page.wait("!document.querySelector('dialog[open]')");

    // By keyboard alone: from the messages to the tools of one.
    page.resize(WIDE);
    page.value("document.querySelector('#log').focus()");
    page.press("ArrowUp", 38);
    page.wait("document.activeElement.classList.contains('message')");
    page.wait("document.activeElement.querySelector('.tools button')");
    assert_eq!(page.troubles(), [""; 0]);
}

/// The answer to a plain request.
fn get(address: &str, path: &str) -> String {
    get_with(address, path, "")
}

/// The answer to a plain request with further header fields, each with its end.
fn get_with(address: &str, path: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_can_be_left_out() {
    for (is_on, status) in [(true, "HTTP/1.1 200 "), (false, "HTTP/1.1 404 ")] {
        let config = server::Config { page: is_on, ..server::Config::default() };
        let server = server::spawn(config, crate::rig::listener()).unwrap();
        let address = server.address().to_string();
        for path in ["/", "/app.js"] {
            let answer = get(&address, path);
            assert!(answer.starts_with(status), "{path}: {answer}");
            assert_eq!(answer.contains("default-src 'none'"), is_on, "{path}");
            let Some((_, tag)) = answer.split_once("ETag: ") else { continue };
            let known = format!("If-None-Match: {}\r\n", tag.lines().next().unwrap());
            let answer = get_with(&address, path, &known);
            assert!(answer.starts_with("HTTP/1.1 304 "), "{path}: {answer}");
        }
        assert!(get(&address, "/healthz").ends_with("\r\n\r\nok\n"));
    }
    let folder = Folder::new("page");
    let answer = folder.throng(["serve", "--listen", "127.0.0.1:0", "--page", "maybe"]);
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    let mistake = "for '--page <PAGE>': it is on or off, not \"maybe\"";
    assert!(answer.stderr.contains(mistake), "{}", answer.stderr);
}

/// Moves to a message and uses the tool of that name beside it.
fn use_tool(page: &Page<'_>, number: u32, tool: &str) {
    let row = format!("document.querySelector('[data-number=\"{number}\"]')");
    page.wait(&row);
    page.value(&format!("{row}.focus()"));
    let button = format!("{row}.querySelector('.tools [aria-label^=\"{tool}\"]')");
    page.wait(&button);
    page.value(&format!("{button}.click()"));
}

/// Opens the menu about a person and takes what is written there.
fn choose(page: &Page<'_>, person: &str, words: &str) {
    page.click(&format!("#people-list [data-name={person}]"));
    pick(page, words);
}

fn pick(page: &Page<'_>, words: &str) {
    page.wait("document.querySelector('#menu').open");
    let items = "[...document.querySelectorAll('#menu-items button')]";
    page.value(&format!("{items}.find((item) => item.textContent === {}).click()", json!(words)));
    page.wait("!document.querySelector('#menu').open");
}

#[test]
fn what_was_said_can_be_answered_changed_and_taken_back() {
    let Some(browser) = Browser::start() else { return };
    let server = yardstick();
    let at = server.address().to_string();
    let ann = enter(&browser, &at, WIDE, "ann");
    let bob = enter(&browser, &at, NARROW, "bob");
    say(&ann, "what is it?");
    use_tool(&bob, 1, "Reply");
    bob.wait(
        "document.querySelector('#about-text').textContent === 'Replying to ann: what is it?'",
    );
    say(&bob, "a page");
    ann.wait("document.querySelector('.quote').textContent === 'ann: what is it?'");
    use_tool(&ann, 2, "React with ❤");
    bob.wait("document.querySelector('[data-number=\"2\"] .chip').title === 'ann'");
    bob.click("[data-number=\"2\"] .chip");
    ann.wait("document.querySelector('.chip').textContent === '❤️ 2'");
    ann.click(".chip");
    bob.wait("document.querySelector('.chip').getAttribute('aria-pressed') === 'true'");
    bob.wait("document.querySelector('.chip').textContent === '❤️ 1'");

    use_tool(&ann, 1, "Edit");
    ann.wait("document.querySelector('#text').value === 'what is it?'");
    say(&ann, "what is <b>this</b>?");
    wait_for(&bob, "1 ann: what is <b>this</b>? (edited)");
    bob.wait("document.querySelector('.quote').textContent === 'ann: what is <b>this</b>?'");
    say(&bob, "not for you");
    use_tool(&bob, 3, "Delete");
    pick(&bob, "Delete the message for everybody");
    for page in [&ann, &bob] {
        wait_for(page, "3 bob: This message was deleted.");
    }
    // What others have said is not for her to edit or delete.
    ann.value("document.querySelector('[data-number=\"2\"]').focus()");
    ann.wait("document.querySelector('[data-number=\"2\"] .tools [aria-label=Reply]')");
    let foreign = "document.querySelector('[data-number=\"2\"] .tools [aria-label=Delete]')";
    assert_eq!(ann.value(&format!("{foreign} === null")), true);

    // The same again from the past.
    let both = [texts(&ann), texts(&bob)];
    for (page, expect) in [&ann, &bob].into_iter().zip(both) {
        page.reload();
        page.wait(
            "document.querySelectorAll('.message').length === 3 && document.querySelector('.chip')",
        );
        assert_eq!(texts(page), expect);
        assert_eq!(page.troubles(), [""; 0]);
    }
}

#[test]
fn two_people_write_to_each_other() {
    let Some(browser) = Browser::start() else { return };
    let server = yardstick();
    let at = server.address().to_string();
    let ann = enter(&browser, &at, WIDE, "ann");
    let bob = enter(&browser, &at, WIDE, "bob");
    ann.wait("document.querySelector('#people-list [data-name=bob]')");
    choose(&ann, "bob", "Write a direct message");
    ann.wait("document.querySelector('#title').textContent === 'bob'");
    say(&ann, "only for you");
    bob.wait("document.querySelector('[data-place=ann] .badge').textContent === '1'");
    assert_eq!(texts(&bob), [""; 0], "it is not in the room");
    bob.click("[data-place=ann]");
    wait_for(&bob, "ann: only for you");
    say(&bob, "I hear you");
    let of = |page: &Page<'_>| -> Vec<String> {
        let text = |said: String| said.split_once(' ').unwrap().1.to_owned();
        texts(page).into_iter().map(text).collect()
    };
    let expect = ["ann: only for you", "bob: I hear you"];
    for page in [&ann, &bob] {
        wait_for(page, "bob: I hear you");
        assert_eq!(of(page), expect);
        page.reload();
        page.wait("document.querySelector('#tells button') && document.querySelector('#people-number').textContent === '2'");
        page.click("#tells button");
        wait_for(page, "bob: I hear you");
        assert_eq!(of(page), expect, "after loading the page anew");
        assert_eq!(page.troubles(), [""; 0]);
    }
}

#[test]
fn an_owner_decides_who_is_in_and_who_speaks() {
    let Some(browser) = Browser::start() else { return };
    let server = yardstick();
    let at = server.address().to_string();
    let ann = enter(&browser, &at, WIDE, "ann");
    let bob = enter(&browser, &at, WIDE, "bob");
    ann.click("#create-open");
    ann.write("#create-name", "club");
    ann.click("#create-private");
    ann.click("#create-go");
    ann.wait("document.querySelector('#subtitle').textContent === 'private · owner'");
    bob.write("#join-room", "club");
    bob.press("Enter", ENTER);
    bob.wait("document.querySelector('#text').disabled");

    ann.click("#settings-open");
    ann.wait("document.querySelector('#settings').open");
    ann.write("#grant-name", "bob");
    ann.click("#grant");
    ann.wait("document.querySelector('#rights').textContent.includes('bobmember')");
    ann.write("#settings-slow", "3600");
    ann.click("#settings-go");
    ann.wait("!document.querySelector('#settings').open");
    // Let in, he is in.
    bob.wait("!document.querySelector('#text').disabled");
    bob.wait("document.querySelector('#subtitle').textContent.includes('slow mode 3600 s')");
    say(&bob, "thank you");
    wait_for(&ann, "1 bob: thank you");
    say(&bob, "too soon");
    bob.wait("document.querySelector('.waiting.failed').textContent.includes('too soon')");
    assert_eq!(texts(&ann).len(), 1);

    choose(&ann, "bob", "Mute");
    bob.wait("document.querySelector('#text').placeholder === 'You are muted here'");
    choose(&ann, "bob", "Ban");
    bob.wait("document.querySelector('#text').disabled");
    ann.wait("document.querySelector('#people-number').textContent === '1'");
    let notes = "[...document.querySelectorAll('.note')].map((note) => note.textContent)";
    let told = ann.value(notes);
    assert_eq!(
        told.as_array().unwrap().last(),
        Some(&json!("bob is banned now, by you")),
        "{told}"
    );
    for page in [&ann, &bob] {
        assert_eq!(page.troubles(), [""; 0]);
    }
}
