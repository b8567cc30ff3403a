//! A headless Chromium that is driven by its DevTools protocol, over a WebSocket.

use crate::rig::{Folder, read, wait_until};
use protocols::wire::frame::{self, Assembler, Frame, Limits, Opcode};
use protocols::wire::http::UpgradeRequest;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// How long a page may take until something is so, and the browser until it answers: long enough
/// for any machine; a test that works never waits so long.
const PATIENCE_MS: u64 = 120_000;
const PATIENCE: Duration = Duration::from_secs(150);
/// How often a question is asked again because the page was loaded anew meanwhile.
const LOADS_MAX: usize = 5;
/// What a browser wants of the network and the machine for itself, it does not get.
const FLAGS: &[&str] = &[
    "--headless=new",
    // Only pages of this house are opened, and containers seldom allow a sandbox in them.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--remote-debugging-port=0",
    "about:blank",
];

/// The program, if it is installed. Where tests are run for everybody, it has to be.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/bin".into()]).collect();
    let mut all = NAMES.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    let found = all.find(|program| program.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "chromium is not installed");
        eprintln!("skipped: chromium is not installed (and CI is not set)");
    }
    found
}

/// A browser of a test's own.
pub(crate) struct Browser {
    child: Child,
    wire: RefCell<Wire>,
    _folder: Folder,
}

impl Browser {
    /// Starts one; `None` if there is none and the test is to be skipped.
    pub(crate) fn start() -> Option<Browser> {
        let program = program()?;
        let folder = Folder::new("browser");
        let said = folder.path("stderr");
        let mut command = Command::new(program);
        command.arg(format!("--user-data-dir={}", folder.path("profile").display()));
        command.args(FLAGS).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&said).unwrap());
        let mut child = command.spawn().unwrap();
        let door = folder.path("profile/DevToolsActivePort");
        let mut has_ended = false;
        wait_until("the browser listens", || {
            has_ended = child.try_wait().unwrap().is_some();
            has_ended || read(&door).lines().count() >= 2
        });
        assert!(!has_ended, "the browser ended: {}", read(&said));
        let door = read(&door);
        let mut lines = door.lines();
        let (port, path) = (lines.next().unwrap(), lines.next().unwrap());
        let wire = RefCell::new(Wire::connect(port.parse().unwrap(), path));
        Some(Browser { child, wire, _folder: folder })
    }

    /// Opens an address in a window of that size.
    pub(crate) fn open(&self, address: &str, size: (u32, u32)) -> Page<'_> {
        let mut wire = self.wire.borrow_mut();
        // A context is a browser of somebody else: nothing is shared.
        let context = wire.ask("Target.createBrowserContext", json!({}), None);
        let target = json!({
            "url": "about:blank", "newWindow": true, "browserContextId": context["browserContextId"]
        });
        let target = wire.ask("Target.createTarget", target, None);
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = wire.ask("Target.attachToTarget", attach, None);
        let session = session["sessionId"].as_str().unwrap().to_owned();
        drop(wire);
        let target = target["targetId"].as_str().unwrap().to_owned();
        let page = Page { browser: self, session, target };
        for domain in ["Page", "Runtime", "Log"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page.ask("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        page.resize(size);
        page.ask("Page.navigate", json!({"url": address}));
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Whether it goes by itself or not, it goes.
        if let Ok(mut wire) = self.wire.try_borrow_mut() {
            wire.write("Browser.close", &json!({}), None);
        }
        for _ in 0..200 {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One page, in a browser context of its own.
pub(crate) struct Page<'b> {
    browser: &'b Browser,
    session: String,
    target: String,
}

impl Page<'_> {
    /// A command of the DevTools protocol, to this page.
    pub(crate) fn ask(&self, method: &str, parameters: Value) -> Value {
        self.browser.wire.borrow_mut().ask(method, parameters, Some(&self.session))
    }

    pub(crate) fn resize(&self, (width, height): (u32, u32)) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false
        });
        self.ask("Emulation.setDeviceMetricsOverride", size);
    }

    /// Light or dark.
    pub(crate) fn prefer(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.ask("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// The value of an expression, or why it has none.
    fn try_value(&self, expression: &str) -> Result<Value, String> {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
            "userGesture": true
        });
        let mut wire = self.browser.wire.borrow_mut();
        let told = wire.try_ask("Runtime.evaluate", parameters, Some(&self.session))?;
        match told.get("exceptionDetails") {
            None => Ok(told["result"]["value"].clone()),
            Some(why) => Err(format!("threw {why}")),
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.try_value(expression).unwrap_or_else(|why| panic!("{expression}: {why}"))
    }

    /// As [`Page::value`], of a text.
    pub(crate) fn text(&self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}")).to_owned()
    }

    /// Waits until a condition holds in the page: it is looked at in each of the page's frames.
    pub(crate) fn wait(&self, condition: &str) {
        let wait = format!(
            "new Promise((yes, no) => {{
                const end = Date.now() + {PATIENCE_MS};
                const look = () => {{
                    let is = false;
                    try {{ is = ({condition}) }} catch {{}}
                    if (is) return yes(true);
                    if (Date.now() > end) return no(new Error(document.body.innerText));
                    setTimeout(look, 15);
                }};
                look();
            }})"
        );
        let mut why = String::new();
        for _ in 0..LOADS_MAX {
            match self.try_value(&wait) {
                Ok(_) => return,
                Err(error) if error.starts_with("threw") => {
                    panic!("waited in vain: {condition}\n{error}\n{:?}", self.troubles())
                }
                // The page was loaded anew.
                Err(error) => why = error,
            }
        }
        panic!("{condition}: {why}");
    }

    /// Loads it anew, and waits until it is another document.
    pub(crate) fn reload(&self) {
        self.value("void (window.isOld = true)");
        self.ask("Page.reload", json!({}));
        self.wait("!window.isOld && document.readyState === 'complete'");
    }

    /// Clicks on what a selector finds.
    pub(crate) fn click(&self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.wait(&found);
        self.value(&format!("{found}.click()"));
    }

    /// Writes into what a selector finds, as by keyboard.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.value(&format!("{found}.focus(), {found}.select()"));
        self.ask("Input.insertText", json!({"text": text}));
    }

    pub(crate) fn press(&self, key: &str, code: u32) {
        let mut event = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if key == "Enter" {
            event["text"] = json!("\r");
        }
        self.ask("Input.dispatchKeyEvent", event);
        let event = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.ask("Input.dispatchKeyEvent", event);
    }

    /// Turns the wheel over the middle of the page.
    pub(crate) fn turn_wheel(&self, pixels: i32) {
        let event =
            json!({"type": "mouseWheel", "x": 600, "y": 400, "deltaX": 0, "deltaY": pixels});
        self.ask("Input.dispatchMouseEvent", event);
    }

    /// What went wrong in the page until now: exceptions, errors and warnings on the console, what
    /// its policy forbade.
    pub(crate) fn troubles(&self) -> Vec<String> {
        // Events come before the answer to what was asked behind them.
        self.value("1");
        let wire = self.browser.wire.borrow();
        let own = wire.troubles.iter().filter(|(session, _)| *session == self.session);
        own.map(|(_, what)| what.clone()).collect()
    }

    /// Closes it, as its reader would.
    pub(crate) fn close(self) {
        let close = json!({"targetId": self.target});
        self.browser.wire.borrow_mut().ask("Target.closeTarget", close, None);
    }
}

/// The conversation with the browser.
struct Wire {
    stream: TcpStream,
    inbox: Vec<u8>,
    parts: Assembler,
    asked: u64,
    /// By session.
    troubles: Vec<(String, String)>,
}

impl Wire {
    fn connect(port: u16, path: &str) -> Wire {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = format!("127.0.0.1:{port}");
        let request = UpgradeRequest {
            path,
            host: &host,
            headers: &[],
            protocols: &[],
            key: [7; 16],
            deflate: false,
        };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        let parts = Assembler::new();
        let mut wire = Wire { stream, inbox: Vec::new(), parts, asked: 0, troubles: Vec::new() };
        let used = loop {
            if let Some(accepted) = request.read_response(&wire.inbox).unwrap() {
                break accepted.consumed;
            }
            wire.fill();
        };
        wire.inbox.drain(..used);
        wire
    }

    fn fill(&mut self) {
        let mut buffer = [0; 64 * 1024];
        let length = self.stream.read(&mut buffer).expect("the browser answers in time");
        assert!(length > 0, "the browser has gone");
        self.inbox.extend_from_slice(&buffer[..length]);
    }

    fn write(&mut self, method: &str, parameters: &Value, session: Option<&str>) -> u64 {
        self.asked += 1;
        let mut command = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = Vec::new();
        let command = command.to_string();
        frame::write_frame(&mut bytes, Opcode::Text, command.as_bytes(), Some([1, 2, 3, 4]));
        // Who has gone is noticed by whoever reads.
        let _ = self.stream.write_all(&bytes);
        self.asked
    }

    fn ask(&mut self, method: &str, parameters: Value, session: Option<&str>) -> Value {
        let told = self.try_ask(method, parameters, session);
        told.unwrap_or_else(|why| panic!("{method}: {why}"))
    }

    fn try_ask(
        &mut self,
        method: &str,
        parameters: Value,
        session: Option<&str>,
    ) -> Result<Value, String> {
        let asked = self.write(method, &parameters, session);
        loop {
            let message = self.hear();
            if message["id"] != asked {
                self.note(&message);
                continue;
            }
            return match message.get("error") {
                None => Ok(message["result"].clone()),
                Some(error) => Err(error.to_string()),
            };
        }
    }

    fn hear(&mut self) -> Value {
        loop {
            let decoded = frame::decode(&self.inbox, Limits::CLIENT).unwrap();
            let Some((part, used)) = decoded else {
                self.fill();
                continue;
            };
            let whole = self.parts.push(part, Limits::CLIENT).unwrap();
            let text = match whole {
                Some(Frame { opcode: Opcode::Text, payload, .. }) => Some(payload.to_vec()),
                _ => None,
            };
            self.inbox.drain(..used);
            if let Some(text) = text {
                return serde_json::from_slice(&text).unwrap();
            }
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let what = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => parameters["exceptionDetails"].to_string(),
            Some("Runtime.consoleAPICalled") if parameters["type"] != "log" => {
                parameters["args"].to_string()
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] != "verbose" => {
                parameters["entry"].to_string()
            }
            _ => return,
        };
        let session = event["sessionId"].as_str().unwrap_or_default().to_owned();
        self.troubles.push((session, what));
    }
}
