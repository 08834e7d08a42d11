//! Variables of callers: what they may be called, hold, and who judges them.
//!
//! Names that steer the loader, an interpreter, or a tool that starts programs are refused whatever a filter says. The kernel does not set AT_SECURE for our children, so ld.so strips nothing: this list is the only guard.

use super::facts::{Facts, Question};
use super::index::Filter;
use super::pattern::{Arena, Lean};
use super::text::{either, printable, quoted};

/// Names, in full.
const NAMES: &[&str] = &[
    // ld.so(8), libc, malloc.
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "LOCPATH",
    "MEMUSAGE_OUTPUT",
    "MUSL_LOCPATH",
    "NIS_PATH",
    "NLSPATH",
    "PATH_LOCALE",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "SEGFAULT_OUTPUT_NAME",
    "TEXTDOMAINDIR",
    "GMON_OUT_PREFIX",
    "SHLIB_PATH",
    "LIBPATH",
    "TZDIR",
    // Shells.
    "CDPATH",
    "ENV",
    "FPATH",
    "FCEDIT",
    "GLOBIGNORE",
    "HISTFILE",
    "IFS",
    "INPUTRC",
    "NULLCMD",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS1",
    "PS4",
    "READNULLCMD",
    "SHELLOPTS",
    "TMPPREFIX",
    "ZDOTDIR",
    // What the service sets itself.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    // Where programs find their files, buses and agents.
    "AWS_CONFIG_FILE",
    "BLKID_FILE",
    "CREDENTIALS_DIRECTORY",
    "CURL_HOME",
    "DISPLAY",
    "GDK_PIXBUF_MODULE_FILE",
    "GI_TYPELIB_PATH",
    "GNUPGHOME",
    "GSETTINGS_SCHEMA_DIR",
    "KUBECONFIG",
    "LOCALE_ARCHIVE",
    "MAGIC",
    "MODPROBE_OPTIONS",
    "MYSQL_HOME",
    "NOTIFY_SOCKET",
    "QEMU_MODULE_DIR",
    "SSLKEYLOGFILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEM_WGETRC",
    "TEMP",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERMPATH",
    "TMP",
    "TMPDIR",
    "WAYLAND_DISPLAY",
    "WGETRC",
    "XAUTHORITY",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ARPTABLES_LIB_DIR",
    "IPTABLES_LIB_DIR",
    "IP6TABLES_LIB_DIR",
    "EBTABLES_LIB_DIR",
    "TC_LIB_DIR",
    // Programs that others start.
    "BROWSER",
    "CVS_RSH",
    "EDITOR",
    "EXINIT",
    "GREP_OPTIONS",
    "GVIMINIT",
    "GZIP",
    "HGRCPATH",
    "MANPAGER",
    "MAILCAPS",
    "MORE",
    "PAGER",
    "SVN_SSH",
    "TAPE",
    "TAR_OPTIONS",
    "VISUAL",
    "XZ_DEFAULTS",
    "XZ_OPT",
    // Interpreters, build tools and runtimes.
    "AWKLIBPATH",
    "AWKPATH",
    "CLASSPATH",
    "EMACSLOADPATH",
    "GEM_HOME",
    "GEM_PATH",
    "GNUMAKEFLAGS",
    "GOCOVERDIR",
    "GODEBUG",
    "IBM_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LLVM_PROFILE_FILE",
    "PHPRC",
    "TCLLIBPATH",
    "TCL_LIBRARY",
    "TK_LIBRARY",
    "VIMINIT",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
];

/// Beginnings of names.
const PREFIXES: &[&str] = &[
    "LD_",
    "_RLD",
    "DYLD_",
    "LDR_",
    "MALLOC_",
    "BASH",
    "ASAN_",
    "LSAN_",
    "MSAN_",
    "TSAN_",
    "UBSAN_",
    "GCOV_",
    "PERL",
    "PYTHON",
    "RUBY",
    "BUNDLE_",
    "NODE_",
    "NPM_CONFIG_",
    "npm_config_",
    "LUA_",
    "PHP_",
    "GIT_",
    "SYSTEMD_",
    "DPKG_",
    "APT_",
    "DEBCONF_",
    "LVM_SYSTEM_DIR",
    "GUILE_",
    "JULIA_",
    "R_PROFILE",
    "R_ENVIRON",
    "DOTNET_",
    "CORECLR_",
    "COMPlus_",
    "COR_",
    "ERL_",
    "OCAML",
    "CAML",
    "PKCS11_",
    "KRB5",
    "SUDO_",
    "ROOTWRAP_",
    "LISTEN_",
    "DBUS_",
    "GIO_",
    "GNUTLS_",
    "GST_PLUGIN",
    "GTK_",
    "JAVA_",
    "LDAP",
    "LESS",
    "LIBGUESTFS_",
    "LIBMOUNT_",
    "LIBVIRT_",
    "MAKE",
    "MONO_",
    "ODBC",
    "P11_KIT_",
    "PSQL",
    "QML",
    "QT_",
    "RSYNC_",
    "R_HOME",
    "R_LIBS",
    "SASL_",
    "SSH_",
    "XTABLES_",
    "NIX_",
    "OPENSSL_",
];

/// A name and its value.
pub(super) type Variable<'a> = (&'a [u8], &'a [u8]);

/// Why a variable is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Index of the variable.
    pub(super) at: usize,
    /// What was expected, in words.
    pub(super) expected: String,
}

/// Judges all variables of a request by these filters: one, and with an inner command the inner one as well. At least one must list
/// a variable, every one that lists it must take its value, and one that sets it must list it, else it stays as it was set.
pub(super) fn judge(variables: &[Variable<'_>], filters: &[&Filter], arena: &Arena, facts: &Facts) -> Result<Vec<Question>, Refused> {
    let lists: Vec<&[(Box<str>, u32)]> = filters.iter().map(|filter| &*filter.compiled.environment).collect();
    let mut lean = Lean::new(facts);
    for (at, (name, value)) in variables.iter().enumerate() {
        let refuse = |expected: String| Err(Refused { at, expected });
        let shown = printable(name.get(..64).unwrap_or(name));
        if !is_name(name) {
            return refuse("names of variables with letters, digits and `_` only".to_owned());
        }
        if steers(name) {
            return refuse(format!(
                "no variable {shown}: it steers the loader or an interpreter and is never taken from a caller"
            ));
        }
        if variables.iter().take(at).any(|(other, _)| other == name) {
            return refuse(format!("the variable {shown} only once"));
        }
        let mut listed = lists
            .iter()
            .flat_map(|list| list.iter())
            .filter(|(allowed, _)| allowed.as_bytes() == *name)
            .peekable();
        if listed.peek().is_none() {
            return refuse(names(&lists));
        }
        if filters.iter().any(|filter| keeps(filter, name)) {
            return refuse(format!("no variable {shown}: a filter sets it"));
        }
        if !is_harmless(name, value) {
            return refuse(format!(
                "a value of {shown} without NUL, leading `()` and, for locale and time zone, `/` and `%`"
            ));
        }
        for (_, part) in listed {
            let Some(part) = arena.part(*part) else {
                return refuse(names(&lists));
            };
            if !part.accepts(value, false, &mut lean) {
                return refuse(format!("{shown}={}", part.expected()));
            }
        }
    }
    Ok(lean.open)
}

/// Whether a filter sets this variable and does not let a caller change it.
fn keeps(filter: &Filter, name: &[u8]) -> bool {
    let is_set = filter.spec.execution.env_set.iter().any(|(set, _)| set.as_bytes() == name);
    is_set && !filter.compiled.environment.iter().any(|(allowed, _)| allowed.as_bytes() == name)
}

fn names(lists: &[&[(Box<str>, u32)]]) -> String {
    let names: Vec<String> = lists
        .iter()
        .flat_map(|list| list.iter())
        .map(|(name, _)| quoted(name.as_bytes()))
        .collect();
    if names.is_empty() {
        "no variables".to_owned()
    } else {
        format!("no variables but {}", either(&names))
    }
}

/// Whether a word is `NAME=VALUE`, and if so which.
pub(super) fn assignment(word: &[u8]) -> Option<Variable<'_>> {
    let at = word.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (word.get(..at)?, word.get(at + 1..)?);
    is_name(name).then_some((name, value))
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Values that libc or a shell would take for more than text: paths and formats in locale and time zone, functions of old bash.
fn is_harmless(name: &[u8], value: &[u8]) -> bool {
    let locale = matches!(name, b"TZ" | b"LANG" | b"LANGUAGE" | b"TERM") || name.starts_with(b"LC_");
    !(value.contains(&0) || value.starts_with(b"()") || locale && value.iter().any(|byte| b"/%".contains(byte)))
}

/// Whether a name steers the loader, an interpreter or a tool that starts programs: never taken from a caller.
#[must_use]
pub fn steers(name: &[u8]) -> bool {
    NAMES.iter().any(|n| n.as_bytes() == name) || PREFIXES.iter().any(|p| name.starts_with(p.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_steer_are_many_and_some_that_do_not_are_free() {
        assert!(NAMES.len() + PREFIXES.len() >= 70);
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PERL5LIB",
            "PYTHONPATH",
            "RUBYOPT",
            "NODE_OPTIONS",
            "GIT_CONFIG_COUNT",
            "PAGER",
            "SYSTEMD_PAGER",
            "PATH",
            "HOME",
            "BASH_FUNC_x",
            "TERMINFO",
            "NLSPATH",
        ] {
            assert!(steers(name.as_bytes()), "{name}");
        }
        for name in [
            "LC_ALL",
            "LANG",
            "TZ",
            "TERM",
            "PROCESS_TAG",
            "LVM_SUPPRESS_FD_WARNINGS",
            "COLUMNS",
            "NO_COLOR",
        ] {
            assert!(!steers(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn words_are_assignments_only_with_a_good_name() {
        assert_eq!(assignment(b"A=b=c"), Some((&b"A"[..], &b"b=c"[..])));
        assert_eq!(assignment(b"A="), Some((&b"A"[..], &b""[..])));
        for word in ["=x", "A", "-A=x", "A-B=x", "1A=x", "", "A B=x", "\u{e9}=x"] {
            assert_eq!(assignment(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn values_with_paths_formats_or_functions_are_refused() {
        for (name, value, expected) in [
            ("TZ", "UTC", true),
            ("TZ", ":/etc/passwd", false),
            ("LC_ALL", "C", true),
            ("LC_TIME", "%n", false),
            ("LANG", "../x", false),
            ("A", "/x%", true),
            ("A", "() { :; }", false),
            ("A", "a\0b", false),
        ] {
            assert_eq!(is_harmless(name.as_bytes(), value.as_bytes()), expected, "{name}={value:?}");
        }
    }
}
