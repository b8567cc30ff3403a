//! The page on which a person logs in, joins rooms and talks: files in `web/`, part of the binary.

use std::sync::LazyLock;

use protocols::wire::http;
use sha2::{Digest, Sha256};

/// What the page may do: nothing but its own files, its own pictures and WebSockets; no text that
/// somebody wrote can become markup or code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob:; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// One file of the page.
#[derive(Debug)]
pub(crate) struct File {
    path: &'static str,
    content_type: &'static str,
    body: &'static str,
}

const fn file(path: &'static str, content_type: &'static str, body: &'static str) -> File {
    File { path, content_type, body }
}

const FILES: &[File] = &[
    file("/", HTML, include_str!("web/index.html")),
    file("/style.css", STYLE, include_str!("web/style.css")),
    file("/icon.svg", ICON, include_str!("web/icon.svg")),
    file("/app.js", SCRIPT, include_str!("web/app.js")),
    file("/composer.js", SCRIPT, include_str!("web/composer.js")),
    file("/deeds.js", SCRIPT, include_str!("web/deeds.js")),
    file("/dom.js", SCRIPT, include_str!("web/dom.js")),
    file("/faces.js", SCRIPT, include_str!("web/faces.js")),
    file("/inbox.js", SCRIPT, include_str!("web/inbox.js")),
    file("/log.js", SCRIPT, include_str!("web/log.js")),
    file("/panels.js", SCRIPT, include_str!("web/panels.js")),
    file("/people.js", SCRIPT, include_str!("web/people.js")),
    file("/places.js", SCRIPT, include_str!("web/places.js")),
    file("/room.js", SCRIPT, include_str!("web/room.js")),
    file("/wire.js", SCRIPT, include_str!("web/wire.js")),
];

/// What stands for the content of each file: a new version of the page has other ones.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |file: &File| format!("\"{:.32x}\"", Sha256::digest(file.body));
    FILES.iter().map(tag).collect()
});

/// The file at a path.
pub(crate) fn at(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// Appends the answer: the file, or that what the browser has of it is still the same.
    pub(crate) fn write(&self, if_none_match: Option<&str>, out: &mut Vec<u8>) {
        let place = FILES.iter().position(|file| file.path == self.path);
        let tag = place.map_or("", |place| TAGS[place].as_str());
        let is_known = if_none_match
            .is_some_and(|tags| tags.split(',').any(|known| known.trim().ends_with(tag)));
        let headers = [
            ("ETag", tag),
            ("Cache-Control", "no-cache"),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ];
        match is_known {
            true => http::write_response(out, 304, &headers, self.content_type, b""),
            false => {
                http::write_response(out, 200, &headers, self.content_type, self.body.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(file: &File, if_none_match: Option<&str>) -> String {
        let mut out = Vec::new();
        file.write(if_none_match, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_file_is_served_with_its_type_and_told_to_be_known() {
        for file in FILES {
            let whole = answer(at(file.path).unwrap(), None);
            let (head, body) = whole.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.contains(&format!("\r\nContent-Type: {}\r\n", file.content_type)));
            assert!(head.contains("\r\nContent-Security-Policy: default-src 'none';"), "{head}");
            assert_eq!(body, file.body);
            let (_, tag) = head.split_once("\r\nETag: ").unwrap();
            let tag = tag.split("\r\n").next().unwrap();
            for known in [tag.to_owned(), format!("W/{tag}"), format!("\"x\", {tag}")] {
                let short = answer(file, Some(&known));
                assert!(short.starts_with("HTTP/1.1 304 Not Modified\r\n"), "{known}: {short}");
                assert!(
                    short.ends_with("\r\n\r\n") && !short.contains("Content-Length"),
                    "{short}"
                );
            }
            assert_eq!(answer(file, Some("\"x\"")), whole);
        }
        assert!(at("/index.html").is_none() && at("").is_none() && at("/../app.js").is_none());
    }

    #[test]
    fn every_file_is_used_and_whatever_is_used_is_there() {
        let all: String = FILES.iter().map(|file| file.body).collect();
        for file in &FILES[1..] {
            let name = &file.path[1..];
            assert!(all.contains(&format!("\"{name}\"")) || all.contains(&format!("\"./{name}\"")));
        }
        for import in all.split(" from \"./").skip(1) {
            let name = import.split('"').next().unwrap();
            assert!(at(&format!("/{name}")).is_some(), "{name}");
        }
    }

    #[test]
    fn nothing_that_is_written_becomes_markup() {
        let banned = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
        for file in FILES.iter().filter(|file| file.content_type != ICON) {
            for word in banned {
                assert!(!file.body.contains(word), "{}: {word}", file.path);
            }
        }
        let html = FILES[0].body;
        for inline in ["<style", " style=", " onclick=", "javascript:"] {
            assert!(!html.contains(inline), "{inline}: the policy would not let it work");
        }
    }
}
