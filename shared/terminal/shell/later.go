package shell

import (
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// runsLater matches the files whose content runs later: at a login, on a schedule, when a service starts, when a
// repository changes, or when a program crashes.
var runsLater = lazyregexp.New(`(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|` +
	`zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|logout|xprofile|xinitrc|xsession|xsessionrc|` +
	`pam_environment|forward|gitconfig)$|(?:^|/)\.ssh/(?:authorized_keys2?|rc|config|environment)$|` +
	`(?:^|/)\.git/(?:hooks/.|config$)|(?:^|/)\.config/(?:systemd/user|autostart|environment\.d|fish|git)/.|` +
	`^/etc/(?:cron[^/]*|profile|bash\.bashrc|bashrc|zsh[^/]*|environment|ld\.so\.(?:preload|conf)|rc\.local|` +
	`sudoers|inittab|anacrontab|(?:ld\.so\.conf\.d|cron[^/]*|profile\.d|init\.d|systemd|sudoers\.d|pam\.d|` +
	`update-motd\.d|udev/rules\.d|xdg/autostart|zsh)/.+)$|^/var/spool/cron/|^/(?:usr/)?lib/(?:systemd|udev)/.|` +
	`^/proc/sys/(?:kernel/(?:core_pattern|modprobe|hotplug|poweroff_cmd)$|fs/binfmt_misc/)|` +
	`^/sys/kernel/uevent_helper$`)

// written returns the index of an operand that names a file to write whose content runs later, or 0 if there is none.
func written(name string, args []string) int {
	later := func(i int, file string) bool {
		return i > 0 && i < len(args) && runsLater.MatchString(path.Clean(file))
	}
	last := 0
	for i := 1; i < len(args); i++ {
		of, isOf := strings.CutPrefix(args[i], "of=")
		switch {
		case name == "dd" && isOf && later(i, of), name == "tee" && later(i, args[i]):
			return i
		case (name == "curl" || name == "wget") && isAmong("-o -O --output --output-document", args[i-1]) &&
			later(i, args[i]):
			return i
		case isOperand(args[i]):
			last = i
		}
	}
	if isAmong("cp mv ln install rsync", name) && later(last, args[last]) {
		return last
	}
	return 0
}
