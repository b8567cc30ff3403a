//! Who people log in as: patterns and files, with passwords fetched where the plan says.

use model::{Accounts, List, ListPlan, Plan, RoomId, Secret};
use std::path::Path;

/// Largest file of accounts, bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Accounts of all crowds of a plan, passwords included: never written anywhere.
pub struct AccountBook(Vec<Entry>);

enum Entry {
    Pattern { name: String, password: String, first: u32, count: u32 },
    List(Vec<(String, String)>),
}

impl AccountBook {
    /// Collects the accounts of every crowd. Paths are relative to `folder`, the scenario's. The
    /// error says which crowd, what is wrong and what to do.
    pub fn open(plan: &Plan, folder: &Path) -> Result<AccountBook, String> {
        let entries = plan.crowds.iter().map(|crowd| {
            entry(&crowd.accounts, folder).map_err(|why| format!("crowd `{}`: {why}", crowd.name))
        });
        entries.collect::<Result<_, _>>().map(AccountBook)
    }

    /// As [`AccountBook::account`], for the one who comes to a place of a population of at most
    /// `most` after `turn` others: accounts differ from turn to turn as far as there are enough,
    /// and no two places share one if there are `most`.
    pub fn account_in_turn(
        &self,
        crowd: usize,
        index: u32,
        turn: u32,
        most: u32,
    ) -> (String, String) {
        let sets = (self.count(crowd) / most.max(1)).max(1);
        self.account(crowd, index.wrapping_add(turn % sets * most))
    }

    /// The lists of a plan with the names of those on them.
    pub fn lists(&self, plan: &Plan) -> Vec<List> {
        let first = plan.room_count();
        let lists = plan.lists.iter().zip(first..);
        lists
            .map(|(list, room): (&ListPlan, RoomId)| List {
                room,
                names: self.names(list),
                is_roster: list.is_roster,
            })
            .collect()
    }

    fn names(&self, list: &ListPlan) -> Vec<Box<str>> {
        let (mut skip, mut names) = (list.skip, Vec::new());
        for crowd in list.of.iter().map(|&crowd| crowd as usize) {
            let count = self.count(crowd);
            let left = list.take - names.len() as u32;
            let those = skip.min(count)..skip.saturating_add(left).min(count);
            names.extend(those.map(|index| self.account(crowd, index).0.into()));
            skip = skip.saturating_sub(count);
        }
        names
    }

    /// How many accounts a crowd has.
    fn count(&self, crowd: usize) -> u32 {
        match &self.0[crowd] {
            Entry::Pattern { count, .. } => *count,
            Entry::List(list) => list.len() as u32,
        }
    }

    /// Name and password of the `index`-th person of a crowd.
    pub fn account(&self, crowd: usize, index: u32) -> (String, String) {
        match &self.0[crowd] {
            Entry::Pattern { name, password, first, count } => {
                let number = (first + index % count).to_string();
                (name.replace("{n}", &number), password.replace("{n}", &number))
            }
            Entry::List(list) => list[index as usize % list.len()].clone(),
        }
    }
}

fn entry(accounts: &Accounts, folder: &Path) -> Result<Entry, String> {
    match accounts {
        Accounts::Pattern { name, password, first, count } => Ok(Entry::Pattern {
            name: name.clone(),
            password: secret(password, folder)?,
            first: *first,
            count: (*count).max(1),
        }),
        Accounts::File { path } => list(&folder.join(path)).map(Entry::List),
    }
}

fn secret(secret: &Secret, folder: &Path) -> Result<String, String> {
    match secret {
        Secret::Pattern(pattern) => Ok(pattern.clone()),
        Secret::Env(name) => std::env::var(name).map_err(|_| {
            format!(
                "the password is to come from the environment variable {name}, which is not set"
            )
        }),
        Secret::File(path) => {
            let path = folder.join(path);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                format!("cannot read the password: {}: {error}", path.display())
            })?;
            Ok(text.lines().next().unwrap_or("").to_owned())
        }
    }
}

/// Reads a CSV file with a heading that names the columns `name` and `password`.
fn list(path: &Path) -> Result<Vec<(String, String)>, String> {
    let at = path.display();
    let size = std::fs::metadata(path).map_err(|error| format!("{at}: {error}"))?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("{at}: larger than {} MiB", FILE_BYTES_MAX >> 20));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{at}: {error}"))?;
    let mut lines = text.lines().enumerate();
    let heading = lines.next().map_or("", |(_, line)| line);
    let column = |wanted| heading.split(',').position(|name| name.trim() == wanted);
    let (Some(name), Some(password)) = (column("name"), column("password")) else {
        return Err(format!("{at}:1: the first line must name the columns `name,password`"));
    };
    let mut accounts = Vec::new();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        match (fields.get(name), fields.get(password)) {
            (Some(name), Some(password)) => accounts.push(((*name).into(), (*password).into())),
            // The line itself is not shown: it may hold a password.
            _ => return Err(format!("{at}:{}: fewer columns than the first line", index + 1)),
        }
    }
    match accounts.is_empty() {
        true => Err(format!("{at}: no account in it")),
        false => Ok(accounts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_wrap_around() {
        let password = Secret::Pattern("pw{n}".into());
        let accounts = Accounts::Pattern { name: "user{n}".into(), password, first: 5, count: 3 };
        let book = AccountBook(vec![entry(&accounts, Path::new(".")).unwrap()]);
        assert_eq!(book.account(0, 0), ("user5".into(), "pw5".into()));
        assert_eq!(book.account(0, 4), ("user6".into(), "pw6".into()));
    }

    #[test]
    fn who_comes_later_has_another_account_if_there_is_one() {
        let accounts = |count| {
            let password = Secret::Pattern(String::new());
            let accounts = Accounts::Pattern { name: "u{n}".into(), password, first: 0, count };
            let book = AccountBook(vec![entry(&accounts, Path::new(".")).unwrap()]);
            [0, 1, 2, 3].map(|turn| book.account_in_turn(0, 1, turn, 4).0)
        };
        assert_eq!(accounts(8), ["u1", "u5", "u1", "u5"]);
        assert_eq!(accounts(13), ["u1", "u5", "u9", "u1"]);
        assert_eq!(accounts(4), ["u1"; 4]);
        assert_eq!(accounts(3), ["u1"; 4]);
    }

    #[test]
    fn those_on_a_list_are_counted_over_several_crowds() {
        let entry = |name: &str, count| {
            let (name, password) = (name.into(), String::new());
            Entry::Pattern { name, password, first: 0, count }
        };
        let book = AccountBook(vec![entry("a{n}", 2), entry("b{n}", 3)]);
        let names = |of: &[u32], skip, take| {
            book.names(&ListPlan { of: of.into(), skip, take, is_roster: false }).join(" ")
        };
        assert_eq!(names(&[0, 1], 0, 99), "a0 a1 b0 b1 b2");
        assert_eq!(names(&[1, 0], 2, 2), "b2 a0");
        assert_eq!(names(&[0, 1], 1, 1), "a1");
        assert_eq!(names(&[0, 1], 9, 9), "");
    }

    #[test]
    fn lists_are_read_and_their_mistakes_named_without_secrets() {
        let folder = std::env::temp_dir().join(format!("throng-accounts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let check = |text: &str| {
            let path = folder.join("a.csv");
            std::fs::write(&path, text).unwrap();
            list(&path).map_err(|why| why.rsplit("a.csv").next().unwrap_or("").to_owned())
        };
        assert_eq!(check("password,name\ns3,ann\n\n"), Ok(vec![("ann".into(), "s3".into())]));
        assert_eq!(
            check("who\n"),
            Err(":1: the first line must name the columns `name,password`".into())
        );
        assert_eq!(
            check("name,password\nann,a\ns3cret\n"),
            Err(":3: fewer columns than the first line".into())
        );
        assert_eq!(check("name,password\n"), Err(": no account in it".into()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
