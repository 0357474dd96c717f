package shell

import (
	"slices"
	"strings"
	"sync"
)

// A risk is a possible effect of a program that a person should be warned about.
type risk struct {
	class Class
	code  string
	with  [][]string // all words of one entry must be among the arguments; none: always
	text  string     // a sentence
}

// texts maps the codes of warnings to their sentences.
var texts = map[string]string{
	"deletes":     "It deletes or empties files.",
	"device":      "It writes to a disk or file system directly.",
	"unmounts":    "It takes a file system or a device away.",
	"power":       "It stops or restarts the machine.",
	"kills":       "It ends programs that are running.",
	"accounts":    "It changes accounts, or who may do what.",
	"removes":     "It removes software, services or data.",
	"network":     "It changes the network, or who can reach the machine.",
	"tracks":      "It removes records of earlier actions.",
	"interpreter": "It runs a program in another language, which is not looked into.",
	"privilege":   "It runs as another user.",
	"runs":        "It runs other programs, which its arguments or its configuration decide on.",
	"interactive": "It waits for keys, and can run other programs.",
	"elsewhere":   "It runs a command elsewhere: on another machine or in a container.",
	"clears":      "What it leaves running has no environment of this command, so it cannot be found and ended.",
	"later":       "It runs something later, beyond the end of this command.",
	"written":     "What this file holds runs later: at a login, on a schedule, or when a program starts.",
	"background":  "What it leaves running is ended when the command ends.",
	"shell":       "It has the shell run a text, or changes what commands mean.",
}

// risks lists risky programs. Each line has a class, a code and the names of programs. If only some uses are risky, the
// next part lists entries, separated by commas. The words of one entry must be among the arguments. -x is also found in
// -axz, and a star matches any ending. The last part is the warning, if it differs from the code's. The list is advice:
// other programs can do harm too, so every command that is not read_only needs an approval.
const risks = `
destructive deletes: rm rmdir unlink shred truncate wipe srm trash
destructive deletes: find | -delete
destructive deletes: rsync | --delete*, --remove-source-files
destructive deletes: tar | --remove-files
destructive deletes: zip | -m, --move
destructive deletes: sed perl | -i*, -pi*, -ni*, -pni*, -npi*, --in-place* | It changes files in place.
destructive deletes: git | clean, annex drop, symbolic-ref -d, symbolic-ref --delete, fetch --prune, fetch -p, remote prune, config --unset*, config --remove-section, delete-*, obliterate, undo, reset --hard, reset --merge, reset --keep, checkout --, checkout ., checkout -f, checkout --force, checkout -B, switch -f, switch --force, switch --discard-changes, switch -C, restore, rm, read-tree --reset, push -f, push --force*, push --delete, push -d, push --mirror, push --prune, push :*, push +*, branch -D, branch -d, branch --delete, branch -M, branch -f, branch --force, tag -d, tag --delete, tag -f, stash drop, stash clear, filter-branch, filter-repo, gc --prune*, prune, lfs prune, reflog expire, reflog delete, update-ref -d, replace -d, replace --delete, bulk --purge, bulk --remove*, unpublish, clear*, rerere forget, secret killperson, secret removeperson, notes remove, notes prune, remote remove, remote rm, worktree remove, worktree prune, submodule deinit, rebase, commit --amend | It drops changes or history that git cannot bring back.
destructive device: wipefs | -a, --all, -o, --offset
destructive device: dd fdisk sfdisk cfdisk gdisk sgdisk blkdiscard hdparm mkswap lvremove vgremove pvremove lvreduce mdadm fsck e2fsck tune2fs resize2fs newfs flashcp nwipe scrub sfill sswap grub-install tpm2_clear pg_resetwal pg_dropcluster
destructive device: parted | mk*, rm, res*, set, tog*, na*, move
destructive device: cryptsetup | luksFormat, erase, luksErase, luksKillSlot, luksRemoveKey, luksChangeKey, luksHeaderRestore, reencrypt, close, luksClose, remove
destructive device: badblocks | -w, -n
destructive device: partx kpartx | -d, --delete
destructive device: pvcreate | -f, -ff, --force
destructive device: efibootmgr | -B, -b, -D, --delete*
destructive device: nvram | -d, -c
destructive device: zpool zfs diskutil nvme | offline, labelclear, partitionDisk, format, sanitize, VERB
destructive device: xfs_repair avrdude fastboot | -L, -e, -w, format*, VERB
destructive unmounts: umount udiskie-umount cryfs-unmount swapoff eject
destructive unmounts: fusermount fusermount3 | -u, -z
destructive unmounts: systemd-mount systemd-dissect | -u, --umount
destructive unmounts: udisksctl | unmount, power-off, loop-delete, lock
destructive unmounts: losetup | -d*, -D, --detach*
destructive unmounts: vgchange lvchange | -an*, -aln*, --activate n
destructive unmounts: hdiutil diskutil | detach, eject, unmount*
destructive power: shutdown reboot halt poweroff init telinit kexec
destructive power: systemctl | switch-root, reboot, poweroff, halt, kexec, suspend*, hibernate, hybrid-sleep, soft-reboot, rescue, emergency, isolate
destructive power: loginctl machinectl | reboot, poweroff, halt, suspend*, hibernate, hybrid-sleep, terminate, remove
destructive power: VBoxManage | poweroff, savestate, VERB
destructive power: vagrant qm pct pvesm pveum | halt, free, f, des*, del*, sh, shu*, reb*, unm*, unlink, stop, shutdown, reboot, suspend, VERB
destructive power: aws gcloud az | stop*, restart, deallocate, release*, unsubscribe, detach-*, VERB
destructive kills: kill killall pkill skill xkill fkill killall5 atrm ipcrm
destructive kills: screen tmux | quit, kill*
destructive kills: systemctl gh | kill, cancel, disable --now, mask --now, workflow disable
destructive kills: fuser ss | -k, -K, --kill
destructive removes: apt apt-get aptitude yum dnf zypper apk brew snap pip pip3 npm gem cargo flatpak port | remove, rm, r, un, purge, autoremove, autopurge, erase, uninstall, unpublish, del, --purge, clean, autoclean, cleanup, yank, deprecate, undo, --remove, VERB
destructive removes: bun pnpm yarn conda mamba micromamba poetry | remove, rm, uninstall, clean, clear, prune, VERB
destructive removes: go cargo mvn gradle gradlew gmake ninja flutter dotnet sbt bazel xcodebuild | clean, distclean, --remove, VERB | It removes the results of builds, or downloads.
destructive removes: yay paru trizen yaourt pacaur pikaur aura pacman | -R*, -Sc*, -Yc*, --remove
destructive removes: removepkg pkgrm urpme rmmod rmvirtualenv trash-empty tmpreaper tmpwatch bleachbit
destructive removes: make | clean, distclean, VERB
destructive removes: modprobe | -r, --remove
destructive removes: gio | trash --empty, remove
destructive removes: fdupes jdupes | -d, --delete
destructive removes: rdfind | -deleteduplicates true
destructive removes: rmlint.sh | -d
destructive removes: gsutil | rsync -d, VERB
destructive removes: rclone | sync, move*, delete*, purge, rmdir*, cleanup, dedupe
destructive removes: tarsnap | -d
destructive removes: curl | -X DELETE, -XDELETE, --request DELETE, --request=DELETE
destructive removes: wget | --method=DELETE, --method=delete
destructive removes: ssh-keygen | -R
destructive removes: ssh-add | -d, -D
destructive removes: zip | -d, --delete
destructive removes: logrotate | -f, --force
destructive removes: postsuper | -d
destructive removes: exim exim4 | -Mrm
destructive removes: lpadmin | -x, -r
destructive removes: guix | --roll-back, VERB
destructive removes: cancel | -a
destructive removes: net | /delete
destructive removes: rabbitmqctl | stop*, VERB
destructive removes: goose | down*, reset, VERB
destructive removes: dpkg | -r, -P, --remove, --purge
destructive removes: rpm | -e, --erase
destructive removes: pacman | -R*, --remove
destructive removes: docker podman nerdctl docker-compose podman-compose crictl ctr | rm, rmi, prune, kill, down, leave, reset, delete, trust revoke, signer remove
destructive removes: kubectl oc helm terraform tofu k3s | delete*, drain, uninstall, destroy, apply, replace, undo, taint, untaint, rollback, force-unlock, rm, --replicas=0, repo remove, label *-, annotate *-, set *-
destructive removes: nomad vault packer | disable, drain, seal, VERB
destructive removes: dropdb dropuser
destructive removes: jj lb pvesubscription pveum | d, abandon, undo, VERB
destructive removes: hg sl | strip, hide, VERB
destructive removes: wp pm2 swift | site empty, VERB
destructive removes: openssl | -revoke
destructive removes: at | -d, -r
destructive removes: ansible ansible-playbook | *state=absent
destructive power: ipmitool | power off, power cycle, power reset, VERB
destructive removes: doctl | a d, k d, power-off, power-cycle, untag, VERB
destructive removes: cli53 | rd, rrdelete, rrpurge, VERB
destructive removes: dolt | -d, -D, --unset, VERB
destructive removes: git | credential reject, credential erase
destructive removes: qm | di, disk unlink
destructive removes: kompose | down, VERB
destructive removes: ibmcloud | worker replace, VERB
destructive removes: devenv | gc, VERB
destructive removes: ng | cache clean, VERB
destructive removes: mvn | idea:clean, eclipse:clean, dependency:purge*
destructive removes: secret-tool dunstctl | clear, history-clear
destructive removes: fastlane | clear_*, VERB
destructive removes: buku kubectx pw-metadata rpcinfo upnpc | -d, --delete*
destructive removes: phpize spi | --clean
destructive removes: pkcs11-tool | -b, --delete-object
destructive removes: cheatshh | -dc, -dg
destructive removes: regedit stow | -D, -R, --delete, --restow
destructive removes: minipro | -E, --erase
destructive deletes: gphoto2 exiv2 | -D, -d, rm, delete, --delete*
destructive deletes: rcs | -o*
destructive deletes: rip pg_archivecleanup virt-sysprep lprm vgreduce eclean eclean-kernel gprclean bfg gomi
destructive deletes: latexmk | -c, -C
destructive removes: lpoptions resolvconf | -x, -d
destructive deletes: jhead exiftool | -pure*, -de, -di, -all=
destructive removes: update-initramfs | -d
destructive removes: aura | -Oj
destructive removes: drush drupal | pmu, cc, cr, cache:rebuild, VERB
destructive removes: eopkg | rm*, rr, dc, VERB
destructive removes: salt-key | -d, -D, --delete*
destructive removes: todo tsp slurmctld xsel dosbox | -r, -C, -c, --clear, -erase*
destructive kills: tcpkill
destructive kills: ssh-agent pulseaudio couchdb | -k, -d, --kill
destructive kills: daemon | --stop
destructive removes: crontab | -r
destructive removes: emerge nix-env flyway | -C, -c, -e, --depclean, --prune, --unmerge, --uninstall, clean
destructive kills: loginctl | terminate-*, kill-*
destructive accounts: userdel groupdel deluser delgroup usermod passwd chpasswd gpasswd chage chsh visudo vipw vigr setfacl chattr ldapdelete
destructive accounts: smbpasswd pdbedit | -x
destructive accounts: setcap | -r
destructive accounts: setfattr attr xattr | -x, -r, -d, -c, --remove*
destructive accounts: htpasswd mosquitto_passwd | -D
destructive accounts: semanage | -d, -D, --delete*
destructive accounts: semodule | -r, --remove*
destructive accounts: auditctl | -D, -d, -W
destructive accounts: gh zerotier-cli tailscale | logout, leave, VERB
destructive accounts: chmod chown chgrp | -R, --recursive
destructive network: iptables ip6tables arptables pfctl | -A, -D, -F, -I, -P, -R, -X, -Z, -d, -e, -f, --append, --delete, --flush, --insert, --policy, --zero
destructive network: nft ip route ufw ifconfig | add, append, change, create, del, delete, destroy, flush, insert, down, replace, enable, disable, reset, allow, deny, reject
destructive network: nft | -f, --file
destructive network: route | -f
destructive network: ip | d, de, dele, f, fl, flu
destructive kills: monit supervisorctl | quit, VERB
destructive removes: cupsdisable
destructive removes: tomb | slam, slam all
destructive network: iptables-restore ip6tables-restore
destructive network: arp | -d, --delete
destructive network: brctl | del*
destructive network: conntrack | -D, -F, --delete, --flush
destructive network: nmcli | down, off, disconnect, delete
destructive network: wg-quick | down
destructive removes: psql mysql mariadb sqlite3 mongo mongosh redis-cli bundle python python2 python3 php ruby node npx pnpm yarn make just rake tmux virsh lxc incus | VERB, stop --force
destructive removes: xbps-remove pkg_delete nix-collect-garbage
destructive network: firewall-cmd | --add*, --remove*, --reload, --set*, --panic*
destructive network: ifdown
destructive tracks: history | -c, -d, -w
destructive tracks: journalctl | --vacuum*, --rotate
destructive tracks: dmesg | -C, -c, --clear, --read-clear

change overwrites: mv cp install tee ln | | It may overwrite files.
change overwrites: sort curl wget | -o, -O, --output* | It writes to a file.
change overwrites: curl | -D, --dump-header*, -c, --cookie-jar*, --trace*, --stderr*, --etag-save*, --hsts*, --alt-svc*, --libcurl*, --remote-name*, --ssl-sessions*, %output* | It writes to a file.
change sends: curl | -T, -T*, --upload-file*, -F, -F*, --form*, -d, -d*, --data*, --json*, --url-query*, -Q, --quote*, -X POST, -XPOST, --request POST, -X PUT, -XPUT, --request PUT, -X PATCH, -XPATCH, --request PATCH | It sends data to a server.
change service: systemctl service rc-service launchctl | stop, disable, mask, kill, restart, unload, bootout, remove | It stops or restarts a service.

opaque interpreter: sh bash dash ash zsh ksh mksh fish csh tcsh rbash busybox toybox
opaque interpreter: python python2 python3 pypy3 perl ruby node nodejs deno bun php lua luajit tclsh wish expect awk gawk mawk nawk osascript pwsh powershell R Rscript julia ghci erl elixir java groovy scala swift bc dc m4 ed ex
opaque interpreter: psql mysql mariadb sqlite3 mongo mongosh redis-cli
opaque privilege: sudo doas su runuser pkexec run0 setpriv capsh newgrp sg gosu su-exec setuidgid chpst
opaque runs: env xargs parallel watch time timeout nice ionice stdbuf unbuffer script strace ltrace gdb lldb perf valgrind chroot unshare nsenter firejail bwrap proot fakeroot flock chrt taskset numactl setarch linux32 linux64 run-parts entr direnv prlimit runcon aa-exec choom uclampset ssh-agent dbus-run-session sshpass cgexec logsave rlwrap chronic xvfb-run faketime eatmydata systemd-inhibit systemd-cat tini dumb-init
opaque runs: make gmake cmake ninja just rake npm npx pnpm yarn go cargo mvn gradle pip pip3 gem ansible ansible-playbook
opaque runs: find fd fdfind | -exec, -execdir, -ok, -okdir, -x, -X, --exec*
opaque runs: git | | Its configuration and its hooks decide which other programs it runs.
opaque runs: split | --filter*
opaque runs: install | -s, --strip*
opaque runs: sdiff diff3 | --diff-program*, -o, --output*
opaque runs: dmesg | -H, --human
opaque runs: systemctl timedatectl hostnamectl loginctl journalctl | edit, -H*, --host*, -M*, --machine*, --image*, --root*
opaque runs: systemctl | link, bind, mount-image, switch-root, daemon-reexec, set-environment, import-environment, set-property, add-wants, add-requires, set-default | It decides what the system runs later, or with which variables.
opaque runs: apt apt-get apt-cache apt-mark aptitude | -o*, --option*, -c*, --config-file*, -b, --build, --compile, build-dep, edit-sources, changelog
opaque runs: dpkg | -i, --install, --unpack, --configure, --triggers-only, --root*, --instdir*, --admindir* | It runs the scripts of packages.
opaque runs: dpkg | --pre-invoke*, --post-invoke*, --status-logger*, --command-fd*
opaque runs: ip | xdp*, bpf | It loads a program into the kernel.
opaque runs: ip | netns, netn, net, vrf, vr, v, -b, -batch*
opaque runs: iptables ip6tables | -M, --modprobe*
opaque runs: tcpdump | -z*
opaque runs: nmap | --script*, -sC, -A
opaque runs: ssh-keygen | -D*, -w*
opaque runs: openssl | -engine*, -provider*
opaque runs: tar | -T, --files-from*, --rmt-command*, --checkpoint-action*, --to-command*, --use-compress-program*, -I, -I*, --rsh-command*, -F, --info-script*, --new-volume-script*
opaque runs: sort | --compress-program*
opaque runs: rsync | -e, -e*, --rsh*, --rsync-path*
opaque runs: zip | -T, -TT, --test, --unzip-command*
opaque runs: curl | -K*, --config*, --engine*, --ntlm-wb, ENG, PROV
opaque runs: curl | --unix-socket*, --abstract-unix-socket* | The program behind the socket may run others.
opaque runs: wget | -e*, --execute*, --config*, --use-askpass*
opaque runs: rpm | --pipe*, --eval*, -E
opaque runs: man | -P, -P*, --pager*, -H*
opaque interactive: vi vim nvim view vimdiff nano pico emacs ed ex joe mcedit less more most man info top htop ftp sftp telnet mail mutt gdb
opaque elsewhere: ssh mosh rsh telnet nc ncat netcat socat docker podman nerdctl lxc lxc-attach machinectl kubectl oc virsh vagrant ctr crictl runc
opaque later: at batch crontab systemd-run
opaque later: screen tmux dtach abduco zellij pm2 | | What it leaves running is ended when the command ends, unless a server of your own runs it.
opaque clears: env | -i*, -, --ignore-environment
opaque background: nohup setsid disown daemonize start-stop-daemon bg
opaque background: mongod memcached redis-server gunicorn uwsgi celery nginx httpd apache2 apachectl apache2ctl forever supervisord | --fork, --daemon*, -d, --detach, -k start, start, -g*, -c*
opaque shell: mapfile readarray compopt | -C*, -c*, -F*
opaque shell: jobs | -x*
opaque shell: let eval . source exec trap alias unalias command builtin enable hash set shopt bind complete compgen fc coproc
`

// risksOf returns the risks by the program's name.
var risksOf = sync.OnceValue(func() map[string][]risk {
	of := map[string][]risk{}
	for line := range strings.Lines(risks) {
		head, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		class, code, _ := strings.Cut(head, " ")
		names, rest, _ := strings.Cut(rest, "|")
		with, text, _ := strings.Cut(rest, "|")
		r := risk{class: Class(class), code: code, text: strings.TrimSpace(text)}
		for entry := range strings.SplitSeq(with, ",") {
			if w := strings.Fields(entry); len(w) > 0 {
				r.with = append(r.with, w)
			}
		}
		if r.text == "" {
			r.text = texts[code]
		}
		for _, name := range strings.Fields(names) {
			of[name] = append(of[name], r)
		}
	}
	return of
})

// isLoader reports whether a program is the system's dynamic loader, which runs the program that it is given.
func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld-") || name == "ld.so" || strings.HasPrefix(name, "ld64.so")
}

// textual lists programs that make a shell run the text after -c.
var textual = words("sh bash dash ash zsh ksh mksh rbash su runuser sg flock script")

var interpreters = words(`sh bash dash ash zsh ksh mksh fish csh tcsh busybox python python2 python3 perl ruby node
	php`)

var downloaders = words("curl wget fetch aria2c lwp-request GET http https scp ftp nc ncat base64")

// indexed lists builtins that take the name of a variable, whose index bash evaluates.
var indexed = words(`test [ printf read unset wait mapfile readarray declare local typeset export readonly let
	getopts`)

// steering lists variables that decide which programs a shell or a program runs, or which files these load.
var steering = words(`PATH IFS ENV BASH_ENV SHELL SHELLOPTS BASHOPTS PROMPT_COMMAND PS0 PS1 PS2 PS4 CDPATH PAGER
	MANPAGER EDITOR VISUAL BROWSER LESSOPEN LESSCLOSE TAR_OPTIONS NODE_OPTIONS RUBYOPT RUBYLIB PERL5OPT PERL5LIB
	PERL5DB JAVA_TOOL_OPTIONS HOME TAPE MAGIC GZIP BZIP BZIP2 UNZIP ZIPINFO XZ_DEFAULTS HISTFILE MAILPATH`)

var steeringPrefixes = []string{"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "PYTHON", "SSH_", "SUDO_", "DOCKER_",
	"npm_config_", "XDG_", "LESS", "SYSTEMD_", "DBUS_", "DPKG_", "OPENSSL_", "NSS_"}

var steeringSuffixes = []string{"_OPTIONS", "_OPTS", "OPT", "OPTS", "PAGER", "EDITOR", "_RSH", "_SSH", "_COMMAND",
	"_CMD", "CONFIG", "_CONFIG_FILE", "_CONF", "CONF_DIR", "DOTDIR", "_FILENAMES", "_HOME", "LIBDIR", "LIB_DIR",
	"_MODULES", "_PATH", "PATH", "SHELL", "BROWSER", "ASKPASS", "RC", "_PROGRAM"}

// steers reports whether a variable decides which programs run, or which files they load.
func steers(name string) bool {
	return steering[name] ||
		slices.ContainsFunc(steeringPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(steeringSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// builtins lists words that are not programs: they mean nothing without a shell.
var builtins = words(`. : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs
	disown enable eval exec exit export fc fg getopts hash help history jobs let local logout mapfile popd pushd read
	readarray readonly return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// fits reports whether the risk applies to the arguments.
func (r risk) fits(name string, args []string) bool {
	p := programs()[name]
	args = withoutNames(name, args)
	missing := func(word string) bool { return !given(p, args, word) }
	return len(r.with) == 0 || slices.ContainsFunc(r.with,
		func(entry []string) bool { return !slices.ContainsFunc(entry, missing) })
}

// shortest is the minimum length of an abbreviated long option (--del for --delete).
const shortest = len("--del")

// given reports whether word is among the arguments of a program: as it is, among other letters of a flag (-f in -rf),
// with a value (--x=y), abbreviated, or matched by a star at one of its ends. VERB matches every verb of [hasVerb].
func given(p program, args []string, word string) bool {
	if word == "VERB" {
		return namesVerb(args)
	}
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch {
		case a == word:
			return true
		case strings.HasPrefix(a, "--") && strings.HasPrefix(word, "--") &&
			(name == word || len(name) >= shortest && strings.HasPrefix(word, name) && !p.names[name[2:]]):
			return true
		case starred(word, a):
			return true
		case len(word) == 2 && word[0] == '-' && word[1] != '-' && !p.names[a] &&
			(cluster(a) && strings.Contains(a, word[1:]) || strings.Contains(p.flags(a), word[1:])):
			return true
		}
	}
	return false
}

// starred reports whether a word with a star at one of its ends matches an argument. A star at the beginning matches no
// option.
func starred(word, a string) bool {
	end, begins := strings.CutPrefix(word, "*")
	begin, ends := strings.CutSuffix(word, "*")
	return len(word) > 1 && (begins && !strings.HasPrefix(a, "-") && strings.HasSuffix(a, end) ||
		ends && strings.HasPrefix(a, begin))
}

// flags returns the letters of an argument that are flags of the program. The last one may be followed by its value.
func (p program) flags(a string) string {
	if len(a) < 2 || a[0] != '-' || a[1] == '-' {
		return ""
	}
	for i, c := range []byte(a[1:]) {
		if valued, ok := p.letters[c]; !ok {
			return a[1 : i+1]
		} else if valued {
			return a[1 : i+2]
		}
	}
	return a[1:]
}

// textIn returns the index of the text for -c. The letter c may be combined with other letters (-lc), and other flags
// may follow. It returns 0 if there is none.
func textIn(args []string) int {
	behind := false
	for i, a := range args {
		if behind && !strings.HasPrefix(a, "-") {
			return i
		}
		behind = behind || cluster(a) && strings.Contains(a, "c")
	}
	return 0
}

// cluster reports whether an argument consists of several flags after one dash.
func cluster(a string) bool {
	if len(a) < 2 || a[0] != '-' {
		return false
	}
	for _, r := range a[1:] {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return false
		}
	}
	return true
}

// printsLines reports whether sed only prints lines that are given by number.
func printsLines(args []string) bool {
	return len(args) > 1 && args[0] == "-n" && strings.HasSuffix(args[1], "p") &&
		strings.Trim(args[1][:len(args[1])-1], "0123456789,$") == "" &&
		!slices.ContainsFunc(args[2:], func(a string) bool { return strings.HasPrefix(a, "-") })
}
