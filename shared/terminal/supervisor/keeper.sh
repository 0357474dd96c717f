#!/bin/sh
# The keeper of Countersign: it runs commands that its user has approved, each in a terminal and a session of its own,
# and knows afterwards what became of them. It lies in ~/.countersign beside the journals of the last commands. All of
# that may be deleted at any time: what runs then is not found again.
#
# keeper VERB KEY=VALUE...   The values have letters, digits and -._/% alone. README.md of shared/terminal/supervisor has the protocol.

umask=$(umask)
umask 077
k=$HOME/.countersign
unset CDPATH guard was sed_names within looks opens files walks private mounts_read git pinned placed repository
for a; do
	case $a in
	id=*) id=${a#*=} ;;             # of the command
	mark=*) mark=${a#*=} ;;         # begins each line that is the keeper's own
	boot=*) boot=${a#*=} ;;         # what the caller knows the host by
	stamp=*) stamp=${a#*=} ;;
	since=*) since=${a#*=} ;;       # when the caller asked for these two, in seconds
	grammar=*) grammar=${a#*=} ;;   # bash or sh
	plain=*) plain=${a#*=} ;;       # a command that only looks
	within=*) within=${a#*=} ;;     # how many folders the request has in which a command may read files
	looks=*) looks=${a#*=} ;;       # how many paths it looks at
	opens=*) opens=${a#*=} ;;       # and how many it reads
	files=*) files=${a#*=} ;;       # it reads files alone
	walks=*) walks=${a#*=} ;;       # it goes below them
	private=*) private=${a#*=} ;;   # it does so and may follow links, so that nobody else may write there
	git=*) git=${a#*=} ;;           # it is git and reads a repository: history or tree
	placed=*) placed=${a#*=} ;;     # the request has the place to which its directory must lead
	pinned=*) pinned=${a#*=} ;;     # its program and its directory must be those in the request
	term=*) term=${a#*=} ;;         # the terminal that the command belongs to
	limit=*) limit=${a#*=} ;;       # these five in hundredths of a second
	term_after=*) term_after=${a#*=} ;;
	kill_after=*) kill_after=${a#*=} ;;
	quiet=*) quiet=${a#*=} ;;       # after which a command that prints nothing is looked at: does it wait for input?
	patience=*) patience=${a#*=} ;; # for input, while nobody is attached
	rows=*) rows=${a#*=} ;;
	cols=*) cols=${a#*=} ;;
	from=*) from=${a#*=} ;;         # bytes of output that the caller has
	never=*) never=${a#*=} ;;
	pty=*) pty=${a#*=} ;;           # script, or channel
	staged=*) staged=${a#*=} ;;
	hold=*) hold=${a#*=} ;;
	tail=*) tail_waits=${a#*=} ;; # GNU's tail is there, which waits for a file's writer
	open_after=*) open_after=${a#*=} ;; # after which a path that cannot be opened is given up
	idle=*) idle=${a#*=} ;; # after which a shell that nobody reads is ended
	umask=*) umask=${a#*=} ;;
	size=*) size=${a#*=} ;; # of a file's content, in bytes
	sum=*) sum=${a#*=} ;;   # its SHA-256
	was=*) was=${a#*=} ;;   # the SHA-256 of the file that it replaces
	most=*) most=${a#*=} ;; # bytes of a file whose SHA-256 is found out
	esac
done
j=$k/$id
first=1048576 # bytes of output that are kept from its beginning
last=196608   # and from its end

# say begins the keeper's part of what is printed: a login shell may have printed something before.
say() { printf '\n%s:begin\n' "$mark"; }

# refuse ends without having begun a command, and says why.
refuse() {
	[ -z "$guard" ] || kill "$guard"
	[ -z "$repository" ] || rm -rf "$repository"
	say
	printf '\n%s:refused:%s\n' "$mark" "$1"
	exit 0
}

# now sets $now to a clock in hundredths of a second that is not set.
now() {
	if read -r now _ 2>/dev/null </proc/uptime; then
		now=${now%.*}${now#*.}
	else
		now=$(date +%s)00
	fi
}

# encode sets $encoded to its argument with each byte as %XX, if there is one in it that is not plain.
encode() {
	encoded=$1
	case $1 in
	*[!A-Za-z0-9/._-]*) encoded=$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g') ;;
	esac
}

# quote sets $quoted to its argument as a word of a shell.
quote() {
	quoted='' rest=$1
	while :; do
		case $rest in
		*\'*)
			quoted=$quoted${rest%%\'*}"'\\''"
			rest=${rest#*\'}
			;;
		*) break ;;
		esac
	done
	quoted="'$quoted$rest'"
}

# the_boot sets $the_boot to what changes with each boot of the host.
the_boot() {
	the_boot=''
	if read -r the_boot 2>/dev/null <"${COUNTERSIGN_BOOT:-/proc/sys/kernel/random/boot_id}"; then return; fi
	the_boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null || sysctl -n kern.boottime 2>/dev/null | tr -dc 0-9)
}

# same reports whether this is the host that the caller knows, in the same boot and with the same journals.
same() {
	the_boot
	the_stamp=''
	read -r the_stamp 2>/dev/null <"$k/stamp"
	[ -n "$stamp" ] && [ "$the_boot" = "$boot" ] && [ "$the_stamp" = "$stamp" ]
}

# claimed reports whether the command was begun, though it may have deleted its journal: the file of the stamp lists all
# that were, so that who forgets them is another host. Each has a line /ID/WHEN.
claimed() { grep -Fq -e "/$id/" "$k/stamp" 2>/dev/null; }

# create makes a file that must not have been there, and reports whether it has.
create() { (set -C && { true >"$1"; }) 2>/dev/null; }

# alive reports whether a keeper works at the command.
alive() {
	pid=''
	read -r pid 2>/dev/null <"$j/pid" && kill -0 "$pid" 2>/dev/null || return 1
	[ ! -r "/proc/$pid/cmdline" ] || tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q " id=$id "
}

probe() {
	the_boot
	if [ -n "$HOME" ] && mkdir -p "$k" 2>/dev/null && { [ -s "$k/stamp" ] || stamp_it; }; then
		read -r the_stamp <"$k/stamp"
		encode "$HOME"
		home=$encoded
		prune 7 </dev/null >/dev/null 2>&1 &
	fi
	say
	echo "os=$(uname -sr)"
	for sh in bash sh; do
		if command -v "$sh" >/dev/null; then echo "shell=$sh"; fi
	done
	if SHELL=/bin/sh script -q -e -f -c 'exit 3' /dev/null </dev/null >/dev/null 2>&1; [ $? = 3 ]; then echo pty=1; fi
	if [ -r /proc/self/environ ]; then echo proc=1; fi
	case $(tail --version 2>&1) in *GNU*) echo tail=1 ;; esac
	echo "home=$home"
	echo "boot=$the_boot"
	echo "stamp=$the_stamp"
	echo "since=$(date +%s)"
	printf '\n%s:over\n' "$mark"
}

# stamp_it gives the folder of journals its stamp. Of several that try at once one does.
stamp_it() {
	od -An -N16 -tx1 /dev/urandom 2>/dev/null | tr -d ' \n' >"$k/stamp.$$" && [ -s "$k/stamp.$$" ] &&
		echo >>"$k/stamp.$$" || return 1
	ln "$k/stamp.$$" "$k/stamp" 2>/dev/null
	rm -f "$k/stamp.$$"
	[ -s "$k/stamp" ]
}

# prune deletes journals that are older than so many days, and the output of all but the last fifty. What remains of
# those says that the command was begun, so that it is not begun again.
prune() {
	find "$k" -mindepth 2 -maxdepth 2 -name boot -mtime "+$1" 2>/dev/null | while read -r f; do
		rm -rf "${f%/boot}"
	done
	find "$k" -maxdepth 1 \( -name 'staged-*' -o -name 'new.*' \) -mtime +1 -exec rm -rf {} +
	(cd "$k" && ls -td -- */cmd 2>/dev/null) | tail -n +51 | while read -r f; do
		[ -e "$k/${f%/cmd}/exit" ] || continue
		rm -f "$k/${f%/cmd}/out" "$k/${f%/cmd}/rest" "$k/${f%/cmd}/in" "$k/${f%/cmd}/names" "$k/$f"
	done
	find "$k" -maxdepth 1 -name stamp.trim -mmin +60 -exec rmdir {} +
	if [ "$(wc -c <"$k/stamp")" -gt 65536 ] && mkdir "$k/stamp.trim"; then
		trim "$1"
		rmdir "$k/stamp.trim"
	fi
}

# trim has the file of the stamp list no commands any more that were begun before so many days, or before the last boot:
# settle says of none of these that it was not begun.
trim() {
	now
	exec 3<"$k/stamp"
	read -r the_stamp <&3
	{
		echo "$the_stamp"
		younger "$1"
	} <&3 >"$k/stamp.new" && mv "$k/stamp.new" "$k/stamp" || return
	sleep 1
	younger "$1" <&3 >>"$k/stamp" # what was added to the old file meanwhile
}

# younger copies the lines of the commands that were begun within so many days.
younger() {
	while IFS=/ read -r _ name at; do
		case $at in
		'' | *[!0-9]*) continue ;;
		esac
		if [ "$at" -le "$now" ] && [ $((now - at)) -lt $(($1 * 8640000)) ]; then echo "/$name/$at"; fi
	done
}

# stage keeps a request for start, where the terminal of the channel is in the way of one.
stage() {
	say
	mkdir -p "$k" && cat >"$k/staged-$staged" && printf '\n%s:over\n' "$mark"
}

newline='
'

# receive reads a request.
receive() {
	read -r cwd
	decode "$cwd"
	cwd=$decoded paths='' sed_names='' name='' pin='' real=''
	if [ -n "$placed" ]; then
		read -r real
		decode "$real"
		real=$decoded
	fi
	if [ -n "$pinned" ]; then
		read -r name
		decode "$name"
		name=$decoded
		read -r pin
		decode "$pin"
		pin=$decoded
	fi
	read_lines "${within:-0}"
	folders=$lines
	read_lines "${looks:-0}"
	looks=$lines fd=4
	while [ $fd -lt $((4 + ${opens:-0})) ]; do
		read -r line shown
		decode "$line"
		paths=$paths$decoded$newline
		decode "$shown"
		sed_names="${sed_names}s|/proc/self/[.]/fd/$fd|$decoded|g$newline"
		fd=$((fd + 1))
	done
	command=$(cat)
	case $command in
	*"$mark") command=${command%"$mark"} ;;
	*) refuse cut ;; # the connection was lost before all of it was here
	esac
}

# read_lines sets $lines to so many lines of the request, decoded.
read_lines() {
	lines='' more=$1
	while [ "$more" -gt 0 ]; do
		read -r line
		decode "$line"
		lines=$lines$decoded$newline
		more=$((more - 1))
	done
}

# decode sets $decoded to a text that octal has encoded.
decode() {
	decoded=$1
	case $1 in
	*\\*)
		decoded=$(printf '%b.' "$1")
		decoded=${decoded%.}
		;;
	esac
}

# which_file prints the place of the directory without links, the file that the name $0 runs there, and its SHA-256 if
# it can be read.
# shellcheck disable=SC2016
which_file='pwd -P; f=$(command -v "$0") || exit; case $f in /*) ;; */*) f=$PWD/$f ;; *) echo builtin; exit ;; esac
readlink -f -- "$f" || exit; [ -r "$f" ] || { echo unreadable; exit; }
sha256sum <"$f" 2>/dev/null || shasum -a 256 <"$f" 2>/dev/null || sha256 -q <"$f"'

# program prints what which_file does of the request's command, which is the name of a program.
program() {
	receive
	cd -- "${cwd:-${HOME:-/}}" 2>/dev/null || refuse cwd
	say
	cleanly sh -c "$which_file" "$command" </dev/null
	printf '\n%s:over\n' "$mark"
}

# same_program ends unless the name still runs the file that it was pinned to, in the directory that it was pinned to.
# The command begins in that directory, and no link leads it elsewhere any more.
same_program() {
	[ -z "$pinned" ] || [ "$(cleanly sh -c "$which_file" "$name" </dev/null)" = "$pin" ] || refuse program
}

# same_place ends if a link, or another directory in its place, now leads the directory elsewhere than the card showed.
same_place() {
	[ -n "$real" ] || return 0
	there=$(pwd -P)
	[ "$there" != "$real" ] || return 0
	encode "$there"
	refuse "moved:$encoded"
}

# open_paths opens what the command reads, as descriptors from 4 on. It is where a descriptor leads that is checked, and
# the descriptor that the command is given.
open_paths() {
	set -f
	IFS=$newline
	for f in $looks $paths; do unmounted "$f" || refuse mounted; done
	set +f
	set -- $looks # also the names that a pattern stands for
	set -f
	for f; do unmounted "$f" || refuse mounted; ! of_kernel "$at" || refuse special; done # file reads what it describes
	roots=''
	for f in $folders; do roots=$roots$(readlink -f -- "$f")$newline; done
	[ -z "$paths" ] || open_each
	[ -z "$git" ] || open_repository
	set +f
	unset IFS
}

# open_repository finds the repository of a git command, and makes a folder of ours that git reads in its place. That
# folder has links to the objects, references and states of the repository, and copies of its configuration and its
# index, but no hooks. The copies are checked and git reads the copies, so nothing can be changed meanwhile. Where there
# is no repository, the folder is empty.
open_repository() {
	guard_opening &
	guard=$!
	at=${looks%%"$newline"*} repository=$k/new.git.$$
	no_pipes || refuse special
	found=$(discover 2>&1) || {
		case $?,$found in
		127,*) repository='' ;; # the command says so
		*,*': not a git repository'*)
			rm -rf "$repository"
			mkdir "$repository" || refuse home # an empty one, which git reads as none
			sed_names="s|not a git repository: '[^']*/git'|not a git repository (or any of the parent directories): .git|"
			;;
		*) refuse git ;;
		esac
		end_guard
		return
	}
	set -- $found
	[ $# = 3 ] || refuse git
	top=$1 dir=$2 common=$(cd -- "$at" && cd -- "$3" && pwd -P) || refuse git
	for f in "$top" "$dir" "$common"; do
		unmounted "$f" || refuse mounted
		[ -z "$within" ] || allowed "$f" || refuse outside
	done
	ordinary_repository || refuse git
	{ copy_repository && harmless_repository; } >/dev/null 2>&1 || refuse git
	end_guard
}

end_guard() {
	kill "$guard"
	guard=''
}

# no_pipes reports whether git waits for no pipe when it looks for the repository.
no_pipes() {
	dir=$(cd -- "$at" && pwd -P) || return 0 # git says why
	until [ -e "$dir/.git" ] || [ -z "$dir" ]; do dir=${dir%/*}; done
	for f in "$dir/.git" "$dir/.git/HEAD" "$dir/.git/config" "$dir/.git/commondir"; do
		[ ! -e "$f" ] || [ -f "$f" ] || [ -d "$f" ] || return 1
	done
}

# discover prints the top folder of the working tree, the repository's folder, and the folder that linked working trees
# have in common. A repository without a working tree, or of another owner, is an error of git's.
discover() {
	cleanly env LC_ALL=C git -C "$at" rev-parse --show-toplevel --absolute-git-dir --git-common-dir
}

# ordinary_repository reports whether no file of a repository, and no list of names in its working tree, is a link or a
# pipe: git prints what some of its files hold, such as the steps of a rebase, and waits for what is written to a pipe.
ordinary_repository() {
	odd=$(find "$dir" "$common" \( -path "$common/hooks" -o -path "$common/lfs" -o -path "$common/modules" \) -prune \
		-o ! -type f ! -type d ! -type s -print 2>/dev/null | head -n 1)
	[ -z "$odd" ] || return
	odd=$(find "$top" -name .git -prune -o ! -type f ! -type d \( -name .gitignore -o -name .gitattributes \
		-o -name .gitmodules -o -name .mailmap \) -print 2>/dev/null | head -n 1)
	[ -z "$odd" ]
}

copy_repository() {
	[ -f "$common/config" ] && [ -f "$dir/HEAD" ] && [ ! -e "$common/objects/info/alternates" ] || return 1
	rm -rf "$repository"
	mkdir -p "$repository/hooks" "$repository/objects" && cat "$common/config" >"$repository/config" &&
		cat "$dir/HEAD" >"$repository/HEAD" && ln -s "$top" "$repository/top" || return 1
	if [ -e "$dir/index" ]; then # with its time, by which git knows which files to compare
		[ -f "$dir/index" ] && cp -p "$dir/index" "$repository/index" || return 1
	fi
	set +f
	ln -s "$common/objects"/* "$repository/objects"
	ln -s "$dir"/* "$repository" # what is there by now stays
	if [ "$dir" != "$common" ]; then
		rm -rf "$repository/refs" "$repository/logs" "$repository/info"
		ln -s "$common"/* "$repository"
	fi
	rm -f "$repository/objects/info" "$repository/commondir" "$repository/config.worktree" \
		"$repository"/sharedindex.*
	set -f
}

# harmless_repository reports whether the copy of a repository has git run no other program.
harmless_repository() {
	keys=$(cleanly env GIT_DIR=/nonexistent git config -f "$repository/config" --no-includes --name-only --list) ||
		return 1
	for key in $keys; do harmless_key "$key" || return 1; done
	[ "$git" = tree ] || return 0
	in_repository git ls-files --stage >"$repository/staged" && ! grep -q '^160000 ' "$repository/staged" # submodules
}

# harmless_key reports whether no command that only looks runs a program for a key of a repository's configuration.
harmless_key() {
	case $1 in
	core.repositoryformatversion | core.filemode | core.bare | core.logallrefupdates | core.ignorecase | \
		core.symlinks | core.precomposeunicode | core.autocrlf | core.eol | core.safecrlf | core.abbrev | core.quotepath | \
		core.trustctime | core.checkstat | core.untrackedcache | core.sharedrepository | core.compression | \
		core.whitespace | core.longpaths | core.protectntfs | core.commentchar | core.editor | core.preloadindex | \
		core.fscache | core.bigfilethreshold | extensions.objectformat | index.version | index.threads) ;;
	remote.*.url | remote.*.pushurl | remote.*.fetch | remote.*.push | remote.*.tagopt | remote.*.prune | \
		remote.*.mirror | remote.*.skipfetchall | remote.*.gh-resolved | remote.pushdefault) ;;
	branch.*.remote | branch.*.merge | branch.*.rebase | branch.*.pushremote | branch.*.description | \
		branch.*.vscode-merge-base | branch.*.gh-merge-base | branch.*.github-pr-owner-number | \
		branch.*.mergeoptions | branch.autosetupmerge | branch.autosetuprebase | branch.sort) ;;
	user.name | user.email | user.signingkey | author.name | author.email | committer.name | committer.email) ;;
	status.short | status.branch | status.showuntrackedfiles | status.relativepaths | status.showstash | \
		status.renames | status.aheadbehind) ;;
	log.date | log.decorate | log.abbrevcommit | log.follow | diff.renames | diff.algorithm | diff.noprefix | \
		diff.mnemonicprefix | diff.colormoved | diff.context | diff.renamelimit) ;;
	pull.rebase | pull.ff | push.default | push.autosetupremote | push.followtags | fetch.prune | fetch.prunetags | \
		fetch.parallel | merge.ff | merge.conflictstyle | merge.renamelimit | rebase.autostash | \
		rebase.autosquash | rerere.enabled | rerere.autoupdate | init.defaultbranch | commit.gpgsign | \
		tag.gpgsign | gpg.format | receive.denycurrentbranch | receive.denynonfastforwards) ;;
	color.* | advice.* | gui.* | gc.* | pack.* | maintenance.auto | maintenance.strategy | submodule.active | \
		submodule.*.url | submodule.*.active | submodule.*.branch | lfs.repositoryformatversion | lfs.*.access | \
		lfs.url | http.*.extraheader | http.postbuffer) ;;
	*) return 1 ;;
	esac
}

# in_repository runs a program in a clean environment whose git reads the copy of a repository, fetches nothing and
# writes nothing.
in_repository() {
	cleanly env "GIT_DIR=$repository" "GIT_WORK_TREE=$repository/top" GIT_CONFIG_NOSYSTEM=1 \
		GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 \
		GIT_ALLOW_PROTOCOL=none GIT_TERMINAL_PROMPT=0 "$@"
}

open_each() {
	case $walks$(cleanly "$grammar" -c 'grep --version' 2>&1) in
	1*GNU*) ;;
	1*) refuse walk ;; # it may follow a link that takes a folder's place
	esac
	guard_opening &
	guard=$!
	fd=4
	for f in $paths; do
		f=$(readlink -f -- "$f") && [ -e "$f" ] || refuse missing
		allowed "$f" || refuse outside
		ordinary "$f" && ! of_kernel "$f" && ! searches_kernel "$f" || refuse special # nothing is read of a pipe, but to open one may wait
		eval 'command exec '$fd'<"$f"' 2>/dev/null || refuse missing
		[ "$(readlink "/proc/$$/fd/$fd")" = "$f" ] || refuse outside # it was changed meanwhile
		ordinary "/proc/$$/fd/$fd" || refuse special
		[ -z "$private" ] || secluded "/proc/$$/fd/$fd" || refuse shared
		fd=$((fd + 1))
	done
	kill "$guard"
	guard=''
}

# secluded reports whether nobody but the command's user and root can put a link below a folder, and nothing there leads
# a program that heeds the lists of ignored files to another file. A user's own group counts as the user.
secluded() {
	[ -d "$1" ] || return 0
	me=$(id -u) own=
	if [ "$(id -gn)" = "$(id -un)" ]; then own="! -group $(id -g)"; fi
	unset IFS
	found=$(find "$1/" \( -type d \( ! -user "$me" ! -user 0 -o -perm -0002 -o -perm -0020 $own \) \) \
		-o \( ! -type f ! -type d \( -name .gitignore -o -name .ignore -o -name .rgignore -o -name .git -o \
		-path '*/.git/*' \) \) -o \( -name .git ! -type d \) 2>/dev/null | head -n 1)
	IFS=$newline
	[ -z "$found" ]
}

# unmounted reports whether a path leads to nothing that is mounted on demand or by a user, where a look may connect to
# another machine or run something, and through no other process. It looks at nothing that lies below such a place. A
# command that goes below the path must find none there, either.
unmounted() {
	at='' rest=$1/ links=0
	case $rest in /*) ;; *) rest=$PWD/$rest ;; esac
	while [ -n "$rest" ]; do
		part=${rest%%/*}
		rest=${rest#*/}
		case $part in
		'' | .) continue ;;
		..) at=${at%/*} ;;
		*) at=$at/$part ;;
		esac
		case $at in /proc/[0-9]*/?*) return 1 ;; esac
		mounted "$at" && return 1
		[ -L "$at" ] || continue
		links=$((links + 1))
		[ $links -le 40 ] && link=$(readlink -- "$at") || return 1
		rest=$link/$rest at=${at%/*}
		case $link in /*) at='' ;; esac
	done
	[ -z "$walks$private" ] || ! mounted "$at" below
}

# mounted reports whether something is mounted on demand or by a user at a path, or below it.
mounted() {
	[ -n "$mounts_read" ] || read_mounts
	for point in $mounts; do
		case $2:$point in
		":$1" | "below:$1"/*) return 0 ;;
		esac
	done
	return 1
}

# of_kernel reports whether reading a file takes something away, waits or shows memory: the kernel answers for it, though
# it looks like an ordinary one.
of_kernel() {
	[ -n "$mounts_read" ] || read_mounts
	for point in $traces; do
		case $1/ in "$point"/*) return 0 ;; esac
	done
	for point in $kernels; do
		case $1/ in "$point"/kmsg/ | "$point"/kcore/) return 0 ;; esac
	done
	return 1
}

# searches_kernel reports whether a command that reads what lies below a folder would read such files.
searches_kernel() {
	[ -n "$walks$private" ] && [ -d "$1" ] || return 1
	for point in $kernels$traces; do
		case $1/,$point/ in "$point"/*,* | *,"${1%/}"/*) return 0 ;; esac
	done
	return 1
}

# read_mounts sets $mounts to where such file systems are; if the root is one, all of the host is. It sets $kernels to
# where the kernel shows its state, and $traces to where it shows what it has recorded.
read_mounts() {
	mounts_read=1 mounts='' kernels='' traces=''
	unset IFS
	while read -r _ point type _; do
		case $point in
		*\\*)
			point=$(printf '%b.' "$(printf %s "$point" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')")
			point=${point%.}
			;;
		esac
		case $point,$type in
		/,* | *,fuse.lxcfs) ;;
		*,fuse* | *,autofs) mounts=$mounts$point$newline ;;
		*,proc | *,sysfs) kernels=$kernels$point$newline ;;
		*,debugfs | *,tracefs) traces=$traces$point$newline ;;
		esac
	done <"${COUNTERSIGN_MOUNTS:-/proc/self/mounts}" 2>/dev/null
	IFS=$newline
}

# guard_opening refuses the command if a path is still not opened after a while: what has become a pipe meanwhile is
# opened when another program writes to it.
guard_opening() {
	s=''
	trap 'kill $s; exit' TERM
	sleep $((open_after / 100)).$((open_after % 100 / 10)) </dev/null >/dev/null 2>&1 &
	s=$!
	wait $s
	(guard='' && refuse special)
	kill -KILL $$
}

# ordinary reports whether a path leads to a file or a folder, and not to a pipe, a socket or a device.
ordinary() { [ -f "$1" ] || { [ -z "$files" ] && [ -d "$1" ]; }; }

# allowed reports whether a path without links lies in one of the folders.
allowed() {
	for root in $roots; do
		case $1 in
		"$root" | "${root%/}"/*) return 0 ;;
		esac
	done
	return 1
}

start() {
	[ -n "$HOME" ] && [ -d "$k" ] || refuse home
	if [ -n "$staged" ]; then exec 5<&0 <"$k/staged-$staged" || refuse cut; fi
	receive
	if [ -n "$staged" ]; then
		exec <&5 5<&-
		rm -f "$k/staged-$staged"
	fi
	same || refuse other
	command -v "$grammar" >/dev/null || refuse shell
	cd -- "${cwd:-$HOME}" 2>/dev/null || refuse cwd
	same_place
	same_program
	open_paths
	if claimed || ! mkdir "$j" 2>/dev/null; then # this is the claim
		[ -d "$j" ] || claimed || refuse home
		[ ! -e "$j/never" ] || refuse never
		refuse begun
	fi
	now
	began=$now
	# What is written at the end has its place on the disk from the beginning.
	if ! { echo $$ >"$j/pid" && printf %s "$command" >"$j/cmd" && echo "$the_boot" >"$j/boot" &&
		printf '%8192s\n' '' >"$j/exit.new" && printf '%99s\n' '' >"$j/ret" && printf '%99s\n' '' >"$j/how" &&
		: >"$j/out" && printf %s "$sed_names" >"$j/names" && mkfifo "$j/in" &&
		echo "/$id/$now" >>"$k/stamp"; } 2>/dev/null; then
		rm -rf "$j"
		refuse home
	fi
	[ -z "$repository" ] || mv "$repository" "$j/git"
	if [ "$pty" = channel ]; then
		on_channel
	else
		on_script
	fi
}

# on_script runs the command in a terminal that does not end with the connection. This process is not a child of its
# own shell's "&": signals that such a child ignores could never be caught by the command.
on_script() {
	exec 3<>"$j/in" # who types from now on is heard: with nobody at its other end a fifo forgets
	follow &
	follower=$!
	exec </dev/null >/dev/null 2>&1
	trap : HUP
	watch &
	watcher=$!
	CS_SELF=$0 CS_ARGS="id=$id mark=$mark grammar=$grammar plain=$plain term=$term rows=$rows cols=$cols umask=$umask" \
		CS_SHELL=$SHELL SHELL=/bin/sh \
		script -q -e -f -c 'exec sh "$CS_SELF" inside $CS_ARGS' /dev/null <&3 | pump
	finish
	if [ -e "$j/follower" ]; then kill "$follower"; fi
	later
}

# on_channel runs the command in the terminal of the connection.
on_channel() {
	say
	trap : HUP INT QUIT TERM
	{ watch </dev/null >/dev/null 2>&1 & } 9<&0
	watcher=$!
	# -m gives it a process group of its own. With that, dash and busybox's ash end when their terminal is hung up, which
	# this shell must not.
	CS_SHELL=$SHELL sh -mc 'sh "$0" inside "$@"; exit' "$0" "id=$id" "mark=$mark" "grammar=$grammar" "plain=$plain" \
		"term=$term" "umask=$umask"
	finish
	ended
	later
}

# hung reports whether the terminal, which is open as a number, has ended with its connection. A shell that waits for a
# command in the foreground goes on waiting when it is told so.
hung() { [ "$pty" = channel ] && [ ! -t "$1" ]; }

# later does what nobody needs to wait for.
later() {
	set -- "$k"/*/cmd
	if [ $# -gt 60 ]; then prune 7 </dev/null >/dev/null 2>&1 & fi
	exit 0
}

# pump keeps the beginning and the end of what it reads. It reads to the end even if the disk is full.
pump() {
	full=''
	if fill "$j/out" $first "$j/count"; then
		counted=$({ tee /dev/stderr | tail -c $last >"$j/last"; } 2>&1 | wc -c)
		if [ $counted -gt $last ]; then
			printf '\n[\342\200\246 %s bytes left out \342\200\246]\n' $((counted - last)) >"$j/rest"
		fi
		cat "$j/last" >>"$j/rest"
		rm -f "$j/last"
		filled=$((filled + counted))
	elif [ -n "$full" ]; then # there is room for a name
		: >"$j/full"
	fi
	echo $filled >"$j/count"
}

# fill appends what it reads to a file, as it comes, up to a number of bytes. It sets $filled to those that there were,
# and reports whether they were so many; $full says that the disk was. dd counts a block that it has read a part of as one.
fill() {
	filled=0
	while [ $filled -lt "$2" ]; do
		size=4096
		if [ $(($2 - filled)) -lt $size ]; then size=$(($2 - filled)); fi
		blocks=$((($2 - filled) / size))
		if ! LC_ALL=C dd bs=$size count=$blocks >>"$1" 2>"$3"; then # the disk is full
			full=1
			cat >/dev/null
			return 1
		fi
		count "$3"
		if [ -n "$counted" ]; then
			filled=$((filled + counted))
		else # busybox's dd may say nothing of bytes
			filled=$(wc -c <"$1") || filled=0
		fi
		if [ $records -lt $blocks ]; then return 1; fi
	done
}

# count sets $counted to the bytes, where that was said, and $records to the blocks that dd has copied, by what it has
# printed.
count() {
	counted='' records=0
	while read -r n word to; do
		case $word,$to in
		byte*) counted=$n ;;
		record*,in) records=$((${n%+*} + ${n#*+})) ;;
		esac
	done 2>/dev/null <"$1"
}

# finish writes down how the command ended.
finish() {
	code='' left=0 names=''
	read -r code left names 2>/dev/null <"$j/ret"
	kill "$watcher" 2>/dev/null
	rm -rf "$j/git"
	if [ -z "$code" ]; then # what ran it was killed too
		code=137
		group=''
		read -r group 2>/dev/null <"$j/pgid"
		end_rest
		[ -e "$j/begun" ] || return # it was not begun, or has deleted what says so: settle finds that out
	fi
	how=''
	read -r how 2>/dev/null <"$j/how"
	if [ -z "$how" ] && hung 0; then how=hangup; fi # watch has not seen it yet
	now
	bytes=''
	read -r bytes 2>/dev/null <"$j/count"
	if [ -z "$bytes" ]; then bytes=$(wc -c <"$j/out") || bytes=0; fi # the disk is full
	after=$PWD
	if [ -s "$j/cwd" ] && ! { IFS= read -r after && ! read -r _; } <"$j/cwd"; then # its name has more than one line
		after=$(cat "$j/cwd" && echo .)
		after=${after%??}
	fi
	encode "$names"
	names=$encoded
	encode "$(cd -- "$after" 2>/dev/null && pwd -P)"
	real=$encoded
	encode "$after"
	if [ -s "$j/cwd" ] && [ -n "$term" ] && [ -z "$plain" ]; then
		[ -d "$k/terminals/$term" ] || mkdir -p "$k/terminals/$term"
		mv "$j/env" "$k/terminals/$term/env.$grammar"
	fi
	line="$code:$encoded:${how:-exited}:$(((now - began) * 10)):$left:$bytes:$names:$real:."
	printf '%s\n' "$line" 1<>"$j/exit.new"
	mv "$j/exit.new" "$j/exit" || printf '%s\n' "$line" >"$j/exit"
}

# ended prints the line that ends a stream.
ended() {
	line=''
	read -r line 2>/dev/null <"$j/exit"
	if [ -e "$j/never" ]; then
		line=refused:never
	else
		case $line in
		*:.) line=${line%:.} ;;
		*) line=refused:lost ;;
		esac
	fi
	printf '\n%s:%s\n' "$mark" "$line"
}

# attach prints what a command has printed, from a byte on, and goes on until it ends.
attach() {
	[ -d "$j" ] || refuse absent
	follow
}

# follow copies the output as it grows. The file that says how the command ended ends it; whoever writes that and knows
# this process wakes it up.
follow() {
	over='' asks='' s='' t=0.05 opened='' beat=0 lost=0
	trap 'over=1; kill $s' TERM
	if [ -n "$hold" ]; then
		true >"$j/holder.$$"
		trap 'rm -f "$j/holder.$$"' EXIT
	fi
	exec 7>&2
	say
	copy # a command may delete its output
	[ "$verb" = attach ] || true >"$j/follower"
	until [ -n "$over" ]; do
		[ ! -e "$j/exit" ] || break
		sleep $t &
		s=$!
		wait $s
		[ -z "$over" ] && copy || break
		if [ -e "$j/asks" ]; then was=1; else was=''; fi
		if [ "$was" != "$asks" ]; then
			asks=$was
			printf '%s:asks:%s\n' "$mark" "$asks" >&7
		fi
		beat=$(((beat + 1) % 10)) # of a second
		if [ -n "$hold" ] && [ -n "$asks" ] && [ $beat = 0 ]; then
			echo >&7 || break # who has left is found out by that: nothing else is written while the command waits
		fi
		if [ "$verb" = attach ]; then
			t=0.1
			if alive; then lost=0; else lost=$((lost + 1)); fi
			[ $lost -le 10 ] && [ ! -e "$j/never" ] || break # in the midst of the claim nobody is there for a moment
		elif ! kill -0 $$; then # the command may have deleted all that would say so
			break
		fi
	done 2>/dev/null
	[ -n "$over" ] || rm -f "$j/follower" # whom nobody has to wake up any more
	copy
	if [ -e "$j/rest" ]; then
		skip=0
		if [ "${from:-0}" -gt $first ]; then skip=$((from - first)); fi
		tail -c +$((skip + 1)) "$j/rest"
	fi
	if [ -e "$j/full" ]; then printf '\n[\342\200\246 left out, as the disk is full \342\200\246]\n'; fi
	ended
}

# copy prints what the output has grown by. In the midst of the claim it is not there yet; that of an old command is not
# there any more.
copy() {
	if [ -z "$opened" ]; then
		{ command exec 3<"$j/out"; } 2>/dev/null || return 0 # command: what fails does not end the shell
		opened=1
		if [ "${from:-0}" -gt 0 ]; then tail -c +$((from + 1)) <&3; fi
	fi
	cat <&3
}

# inside is the leader of the command's session. It runs the command's shell, ends what that leaves behind, and says how
# it ended.
inside() {
	trap : HUP INT QUIT TERM
	echo $$ >"$j/pgid"
	create "$j/begun" || exit
	[ ! -e "$j/stop" ] || {
		echo stopped 1<>"$j/how" # watch may not have seen it yet
		echo 130 0 1<>"$j/ret"
		exit
	}
	if [ -n "$rows" ]; then stty rows "$rows" cols "$cols" 2>/dev/null; fi
	SHELL=$CS_SHELL
	unset CS_SELF CS_ARGS CS_SHELL
	umask "$umask"
	run
	code=$?
	group=$$
	umask 077
	end_rest
	echo "$code $left $names" 1<>"$j/ret"
}

# run runs the command's shell. The text of the command is in none of its arguments.
run() {
	quote "$j"
	q=$quoted
	quote "$PWD"
	case $grammar in
	bash)
		set -- "$(command -v bash)" --noprofile --norc
		read_it='eval "$(<'$q'/cmd)"'
		;;
	*)
		set -- "$(command -v sh)"
		read_it=". $q/cmd"
		;;
	esac
	if [ -n "$plain" ]; then
		sed_names=$(cat "$j/names" 2>/dev/null)
		repository=$j/git
		if [ -d "$repository" ]; then set -- in_repository "$@"; else set -- cleanly "$@"; fi
		renaming "$@" -c "$read_it" "$grammar"
		return
	fi
	save="__countersign() { { set +x; } 2>/dev/null; command export -p >|$q/env && command pwd >|$q/cwd; } 2>/dev/null
trap __countersign EXIT"
	done='set -- $?; __countersign; exit $1'
	if [ -s "$k/terminals/$term/env.$grammar" ] && [ -n "$term" ]; then
		cd_to=$quoted
		quote "$k/terminals/$term/env.$grammar"
		env -i COUNTERSIGN_ACTION="$id" "$@" -c ". $quoted 2>/dev/null; cd $cd_to; export COUNTERSIGN_ACTION=$id
$save
$read_it; $done" "$grammar"
		return
	fi
	PAGER=cat GIT_PAGER=cat SYSTEMD_PAGER=cat DEBIAN_FRONTEND=noninteractive TERM=xterm-256color \
		COUNTERSIGN_ACTION=$id "$@" -c "$save
$read_it; $done" "$grammar"
}

# renaming runs a program, and has what it prints name the paths that were opened for it as the command does.
renaming() {
	[ -n "$sed_names" ] || {
		"$@"
		return
	}
	{
		code=$({ { "$@" 2>&1 3>&- 8>&-; echo $? >&3; } | LC_ALL=C sed "$sed_names" >&8; } 3>&1)
	} 8>&1
	return "${code:-130}" # it was ended with all of its group
}

# cleanly runs a program in an environment that no earlier command has had a part in. It has no home directory, so that
# programs find no configuration there which could have them run others.
cleanly() {
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent USER="$USER" \
		LOGNAME="$LOGNAME" LANG="${LANG:-C.UTF-8}" PAGER=cat GIT_PAGER=cat SYSTEMD_PAGER=cat \
		DEBIAN_FRONTEND=noninteractive TERM=xterm-256color PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 \
		PYTHONDONTWRITEBYTECODE=1 COUNTERSIGN_ACTION="$id" "$@"
}

# find_rest sets $found to the processes of the command that are left: of its session, and those with its variable. The
# leader of the session and its own helpers are none.
find_rest() {
	found=''
	[ -r /proc/self/environ ] || return
	for f in $(grep -ls -e "^.*) [^Z] [0-9]* [0-9]* ${group:-none} " -e "COUNTERSIGN_ACTION=$id" \
		/proc/[0-9]*/stat /proc/[0-9]*/environ); do
		p=${f#/proc/}
		p=${p%/*}
		case $f in *environ) of_action "$f" || continue ;; esac
		read -r stat 2>/dev/null <"/proc/$p/stat" || continue
		set -- ${stat##*) }
		case " $found " in *" $p "*) continue ;; esac
		if [ "$p" != "$group" ] && [ "$2" != "${group:-none}" ] && [ "$1" != Z ]; then found="$found $p"; fi
	done
}

# of_action reports whether the environment has the whole id, for which grep alone also finds a longer one.
of_action() {
	tr '\0' '\n' 2>/dev/null <"$1" | grep -Fqx "COUNTERSIGN_ACTION=$id"
}

# end_rest ends them, and sets $left to their number, and $names to what the first of them call themselves.
end_rest() {
	left=0 round=0 names=''
	while [ $round -lt 50 ]; do
		find_rest
		[ -n "$found" ] || return
		if [ $round = 0 ]; then name_rest; fi
		set -- $found
		[ $# -le $left ] || left=$#
		if [ $round -lt 3 ]; then
			kill $found 2>/dev/null
		else
			kill -KILL $found 2>/dev/null
		fi
		sleep 0.05
		round=$((round + 1))
	done
}

# name_rest sets $names to what the first of the processes call themselves. There is little room for them in the journal.
name_rest() {
	for p in $found; do
		read -r name 2>/dev/null <"/proc/$p/comm" || continue
		name=$(printf %.16s "$name" | tr -c 'A-Za-z0-9._\n-' _)
		[ ${#names} -lt 64 ] || return
		names="$names${names:+ }$name"
	done
}

# watch ends the command at its limit, or when it is asked to, and sees whether it waits for input.
watch() {
	trap 'kill $s; exit 0' TERM
	exec 3<&- 2>/dev/null
	phase=0 t=0.05 s='' group='' looked=$began size='' quiet_since=$began asked='' gone=''
	while :; do
		sleep $t &
		s=$!
		wait $s
		now
		if ! kill -0 $$; then # the keeper was killed: nobody can tell any more how it ends
			phase=4
		fi
		if [ -z "$group" ]; then read -r group <"$j/pgid"; fi # which the command may delete
		case $phase in
		0)
			if [ -e "$j/stop" ]; then
				end stopped
			elif hung 9; then
				end hangup
			elif [ $((now - began)) -ge "$limit" ]; then
				end limit
			elif [ -z "$gone" ] && [ ! -e "$j/pid" ]; then # it can neither be asked about nor stopped any more
				gone=1
				if [ $((now - began + 300)) -lt "$limit" ]; then limit=$((now - began + 300)); fi
			elif [ $((now - looked)) -ge "$quiet" ]; then
				looked=$now
				look
			fi
			if [ $((now - began)) -gt 200 ]; then t=0.2; fi
			;;
		1)
			if [ $((now - ending)) -ge "$term_after" ]; then
				phase=2
				find_rest
				kill -TERM $found ${group:+"-$group"}
			fi
			;;
		2) if [ $((now - ending)) -ge "$kill_after" ]; then phase=3; fi ;;
		3) strike ;;
		4)
			strike
			strike
			exit
			;;
		esac
	done 2>/dev/null
}

# end begins to end the command.
end() {
	echo "$1" 1<>"$j/how"
	rm -f "$j/asks"
	ending=$now phase=1 t=0.05
	kill -INT ${group:+"-$group"}
}

strike() {
	kill -KILL ${group:+"-$group"}
	find_rest
	kill -KILL $found
}

# look sees whether a command that prints nothing waits for its user, and ends it if nobody is there.
look() {
	was=$size
	size=$(wc -c <"$j/out")
	if [ "$size" != "$was" ] || ! waits || [ -e "$j/typed" ]; then
		quiet_since=$now asked=''
		rm -f "$j/asks" "$j/typed"
		return
	fi
	if [ -z "$asked" ]; then
		asked=1 quiet_since=$now
		echo 1 >"$j/asks"
	fi
	for h in "$j"/holder.*; do
		if kill -0 "${h##*.}"; then quiet_since=$now; fi
	done
	if [ $((now - quiet_since)) -ge "$patience" ]; then end input; fi
}

# waits reports whether the terminal has its echo off, or a process waits to read from it.
waits() {
	tty=''
	read -r tty <"$j/tty" || {
		tty=$(readlink "/proc/$group/fd/0") || return
		echo "$tty" >"$j/tty"
	}
	case $(stty -a <"$tty") in *' -echo '*) return 0 ;; esac
	[ -r /proc/self/wchan ] || return
	for p in $(grep -ls "^.*) S [0-9]* [0-9]* $group " /proc/[0-9]*/stat); do
		p=${p#/proc/}
		p=${p%/stat}
		read -r at <"/proc/$p/wchan"
		case $at in
		n_tty_read) return 0 ;;
		wait_woken) # for a terminal, or for a socket
			[ "$(readlink "/proc/$p/fd/0")" = "$tty" ] || continue
			case $(ls -l "/proc/$p/fd") in *socket:*) ;; *) return 0 ;; esac
			;;
		esac
	done
	return 1
}

# stop asks for the command to be ended. One that was not begun never will be.
stop() {
	say
	forbid || { [ -e "$j/exit" ] || echo stopped >"$j/stop"; }
	printf '\n%s:over\n' "$mark"
}

# forbid sees to it that a command that was not begun never is, and reports whether that is so.
forbid() {
	[ -d "$k" ] || return
	if ! claimed && mkdir "$j" 2>/dev/null; then
		echo "$boot" >"$j/boot"
		create "$j/begun"
		forbidden
	fi
	[ -e "$j/never" ]
}

# forbidden notes that a command will never be begun, and by which host that was seen to.
forbidden() {
	the_boot
	the_stamp=''
	read -r the_stamp 2>/dev/null <"$k/stamp"
	echo "$the_boot $the_stamp" >"$j/never"
}

# settle says what became of a command. Who has just claimed it, to begin or to forbid it, may not have written that
# down yet: what is neither known to be over nor under way is looked at again, for a second.
settle() {
	say
	state=unknown round=0
	while [ -d "$j" ] && ! judge && [ $round -lt 10 ]; do
		sleep 0.1
		round=$((round + 1))
	done
	# Six days, as journals are kept for seven.
	if [ $state = unknown ] && [ ! -d "$j" ] && same && [ $(($(date +%s) - since)) -lt 518400 ]; then
		state=absent
		if claimed; then
			state=unknown
		elif [ -n "$never" ] && forbid; then
			state=never
		fi
	fi
	echo "state=$state"
	if [ $state = done ]; then ended; else printf '\n%s:over\n' "$mark"; fi
}

# judge sets $state of a command that has a journal, and reports whether it cannot be that of one in the midst of its
# claim.
judge() {
	state=unknown at=''
	if [ -e "$j/never" ]; then
		read -r at <"$j/never"
		if [ -z "$at" ] || [ "$at" = "$boot $stamp" ]; then state=never; fi
	elif [ -s "$j/exit" ]; then
		state=done
	elif alive; then
		state=running
	elif [ -s "$j/exit" ]; then # it has just ended
		state=done
	elif [ -s "$j/boot" ] && create "$j/begun"; then # a command may have deleted what says that it was begun
		forbidden
		state=never
	else
		the_boot
		read -r at 2>/dev/null <"$j/boot"
		if [ "$at" = "$the_boot" ]; then state=lost; fi
		return 1
	fi
}

# input passes on what its user types. It does not wait for a reader.
input() {
	say
	if [ -e "$j/exit" ] || [ -e "$j/never" ]; then
		why=refused:ended
	elif [ ! -p "$j/in" ]; then
		why=refused:absent # what was typed may come before the command
		# It may have begun since the FIFO was looked for, which is made before the command is claimed.
		if claimed && [ ! -p "$j/in" ]; then why=refused:ended; fi
	elif ! alive; then
		why=refused:ended
	elif [ ! -e "$j/begun" ]; then # nothing holds the FIFO yet: what is typed would be lost
		why=refused:absent
	else
		true 1<>"$j/typed" # before the bytes: a watcher that is just looking does not see them in time
		cat 1<>"$j/in"
		rm -f "$j/asks"
		why=over
	fi
	printf '\n%s:%s\n' "$mark" $why
}

# bare runs a command that only looks on a host where no journal can be kept.
bare() {
	receive
	[ -z "$git" ] || refuse git # there is no place for a copy
	cd -- "${cwd:-/}" 2>/dev/null || refuse cwd
	same_program
	open_paths
	say
	now
	began=$now how=exited group='' s=''
	renaming cleanly sh -c "$command" sh </dev/null 2>&1 &
	p=$!
	{
		trap 'kill $s; exit' TERM
		sleep $((limit / 100)).$((limit % 100 / 10)) &
		s=$!
		wait $s
		find_rest
		kill -KILL $found $p
	} >/dev/null 2>&1 &
	timer=$!
	wait $p
	code=$?
	now
	if [ $((now - began)) -ge "$limit" ]; then how=limit; fi
	kill $timer 2>/dev/null
	end_rest
	encode "$PWD"
	printf '\n%s:%s:%s:%s:%s:%s:0\n' "$mark" $code "$encoded" $how $(((now - began) * 10)) $left
}

# shell attaches to the person's own shell of a terminal, which it begins if there is none. Of what was printed before
# the last part is printed again. The end of the input leaves the shell alone.
shell() {
	if [ "$pty" = channel ]; then
		say
		exec "$SHELL" -l
	fi
	s=$k/terminals/$term/shell
	mkdir -p "$k/terminals/$term" && cd_home || refuse home
	exec 4<&0 </dev/null
	if shell_alive || ! make_shell; then
		size_it
		read_shell
		exit 0
	fi
	{
		read_shell
		[ -e "$s/over" ] || kill -KILL $$ # its user has left: so must this process, for the connection's sake
	} &
	reading=$!
	exec 4<&- >/dev/null 2>&1
	sh "$0" hold "term=$term" "rows=$rows" "cols=$cols" "umask=$umask" "idle=$idle" # outlives this process
	wait $reading # what the server does once this process has ended would cut it off before its last line
	exit 0
}

# make_shell makes what a shell is known by, and reports false where one is there by then: of several that attach at once
# and find none, one begins it.
make_shell() {
	lock=$k/terminals/$term/making ticks=100
	[ -w "$k/terminals/$term" ] || refuse home
	until mkdir "$lock" 2>/dev/null; do
		if [ $ticks = 0 ]; then # who took it was killed, or nobody can
			rmdir "$lock" 2>/dev/null || refuse home
			ticks=100
		fi
		sleep 0.05
		ticks=$((ticks - 1))
	done
	if shell_alive; then
		rmdir "$lock"
		return 1
	fi
	rm -rf "$s"
	mkdir "$s" && mkfifo "$s/in" && true >"$s/part.0" && echo $$ >"$s/pid"
	made=$?
	rmdir "$lock"
	[ $made = 0 ] || refuse home
}

# hold holds a shell until it ends. It is a child of one that is not its own shell's "&", as the one of a command is.
hold() {
	s=$k/terminals/$term/shell
	echo $$ >"$s/pid.new"
	mv "$s/pid.new" "$s/pid" # who reads what the shell prints finds one or the other, and never that there is none
	exec 3<>"$s/in"
	trap : HUP
	guard &
	guard=$!
	CS_SELF=$0 CS_ARGS="term=$term rows=$rows cols=$cols umask=$umask" CS_SHELL=$SHELL SHELL=/bin/sh \
		script -q -e -f -c 'exec sh "$CS_SELF" login $CS_ARGS' /dev/null <&3 | ring
	true >"$s/over" # not ":", whose failure would end this shell
	kill "$guard"
	exit 0
}

cd_home() { cd -- "${HOME:-/}" 2>/dev/null || cd /; }

# login is the person's shell itself.
login() {
	s=$k/terminals/$term/shell
	echo $$ >"$s/pgid"
	tty >"$s/tty"
	read -r rows cols 2>/dev/null <"$s/size" # it was told before there was a terminal
	stty rows "$rows" cols "$cols"
	SHELL=$CS_SHELL
	unset CS_SELF CS_ARGS CS_SHELL
	umask "$umask"
	TERM=xterm-256color
	export TERM
	exec "$SHELL" -l
}

# shell_alive reports whether the shell is there.
shell_alive() {
	pid=''
	[ ! -e "$s/over" ] && read -r pid 2>/dev/null <"$s/pid" && kill -0 "$pid" 2>/dev/null || return 1
	[ ! -r "/proc/$pid/cmdline" ] || tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q " term=$term "
}

part=262144 # bytes: of what a shell prints at least so many are kept, and less than three times as many

# ring keeps the last parts of what it reads. A part is complete when the next one is there. Who reads is waited for, as
# a terminal does, but not for long: the connection may be lost and nobody know it.
ring() {
	exec 6<&0
	n=0
	while :; do
		fill "$s/part.$n" $part "$s/count" <&6 &
		echo $! >"$s/writer.$n"
		wait $! || return
		n=$((n + 1)) ticks=$((idle / 900)) # of the half hour ten seconds
		: >"$s/part.$n"
		while behind $((n - 2)); do
			if [ $ticks -le 0 ]; then
				rm -f "$slow" # who is waited for again when it has come as far
				continue
			fi
			sleep 0.05
			ticks=$((ticks - 1))
		done
		rm -f "$s/part.$((n - 2))" "$s/writer.$((n - 2))"
	done
}

# behind reports whether somebody who reads has not come to a part yet, and sets $slow to the file that says so.
behind() {
	for slow in "$s"/at.*; do
		read -r at <"$slow" && [ "$at" -lt "$1" ] && read -r reader <"$s/reader.${slow##*.}" && kill -0 "$reader" &&
			return
	done 2>/dev/null
	return 1
}

# read_shell copies what the shell prints and what its user types, until one of them ends.
read_shell() {
	say
	print_shell &
	printer=$!
	echo $printer >"$s/reader.$mark"
	{
		cat <&4 1<>"$s/in"
		kill $printer
	} >/dev/null 2>&1 &
	exec 4<&-
	wait $printer
	rm -f "$s/reader.$mark" "$s/at.$mark"
}

# print_shell prints the last part of what was printed, and what is printed from now on.
print_shell() {
	t=''
	trap 'kill $t; exit' TERM
	exec 4<&-
	n=0
	while next_part; do n=$next; done
	size=$(wc -c <"$s/part.$n")
	if [ "$n" -gt 0 ] && [ "$size" -lt $part ]; then tail -c $((part - size)) "$s/part.$((n - 1))"; fi
	want=$n
	while :; do
		if command exec 3<"$s/part.$n"; then
			echo "$n" >"$s/at.$mark"
			if [ "$n" -gt "$want" ]; then
				printf '\r\n[\342\200\246 %s bytes left out \342\200\246]\r\n' $(((n - want) * part))
			fi
			print_part
			want=$((n + 1))
		fi
		next_part || break
		n=$next
	done
	printf '\n%s:over\n' "$mark"
} 2>/dev/null

# next_part sets $next to the oldest part that comes after part $n, and reports whether there is one.
next_part() {
	next=''
	for f in "$s"/part.*; do
		f=${f##*.}
		if [ "$f" -gt "$n" ] && [ "$f" -lt "${next:-$((f + 1))}" ]; then next=$f; fi
	done
	[ -n "$next" ]
}

# print_part prints a part until it is complete.
print_part() {
	until part_whole; do
		if [ -z "$tail_waits" ]; then
			cat <&3 || exit
		elif read -r writer <"$s/writer.$n"; then # of a new part it is not there at once
			# By its name: of what is its input tail is not told that it grows, and looks 20 times a second.
			tail -s 0.05 --pid="$writer" -c +1 -f "$s/part.$n" &
			t=$!
			if wait $t; then # its writer is gone, and the next part about to be there
				until part_whole; do sleep 0.02; done
				return
			fi
		fi
		sleep 0.05 &
		t=$!
		wait $t
	done
	cat <&3
}

# part_whole reports whether nothing more comes to part $n.
part_whole() { next_part || [ -e "$s/over" ] || ! { read -r holder <"$s/pid" && kill -0 "$holder"; }; }

# guard ends the shell once nobody has read it for so long.
guard() {
	trap 'kill $t; exit 0' TERM
	exec 3<&-
	now
	read_at=$now t='' wait=1
	if [ "$idle" -lt 1000 ]; then wait=0.1; fi
	while :; do
		sleep $wait &
		t=$!
		wait $t
		now
		holder=''
		read -r holder <"$s/pid"
		if [ "${holder:-$$}" != $$ ]; then exit; fi # what is there belongs to another shell
		for f in "$s"/reader.*; do
			reader=''
			read -r reader <"$f" && kill -0 "$reader" && read_at=$now
		done
		if [ $((now - read_at)) -lt "$idle" ] && [ ! -e "$s/stop" ]; then continue; fi
		group=''
		read -r group <"$s/pgid"
		kill -HUP "-$group"
		sleep 1
		kill -KILL "-$group"
	done 2>/dev/null
}

# size_it tells the terminal of a shell its size, or has login do it.
size_it() {
	{ echo "$rows $cols" >"$s/size.$$" && mv "$s/size.$$" "$s/size"; } 2>/dev/null
	read -r tty 2>/dev/null <"$s/tty" && stty rows "$rows" cols "$cols" 2>/dev/null <"$tty"
}

resize() {
	say
	s=$k/terminals/$term/shell
	size_it
	printf '\n%s:over\n' "$mark"
}

# close ends the shell of a terminal and forgets all that is kept of the terminal.
close() {
	say
	s=$k/terminals/$term/shell
	if shell_alive; then
		group=''
		read -r group <"$s/pgid"
		kill -HUP "-$group"
		sleep 0.1
		kill -KILL "-$group"
	fi 2>/dev/null
	rm -rf "$k/terminals/$term"
	printf '\n%s:over\n' "$mark"
}

# place reads the path of a file, which is absolute, and sets $file to it.
place() {
	read -r line
	decode "$line"
	file=$decoded
	IFS=$newline
	unmounted "$file" || refuse mounted
	unset IFS
}

# digest prints the SHA-256 of a file, or nothing.
digest() {
	{ sha256sum <"$1" || shasum -a 256 <"$1" || sha256 -q <"$1"; } 2>/dev/null | sed 's/ .*//'
}

# facts describes the file at a path: its kind, the path without links, its size and its hash.
facts() {
	place
	kind=none real='' size=0 sum=''
	if [ -e "$file" ]; then
		kind=other real=$(readlink -f -- "$file")
	elif [ -L "$file" ]; then
		kind=other real=$file # a link to nothing
	elif real=$(cd -- "${file%/*}/" 2>/dev/null && pwd -P); then
		real=${real%/}/${file##*/}
	else
		kind=nowhere
	fi
	IFS=$newline
	if [ -d "$real" ]; then
		kind=folder
	elif [ -f "$real" ] && ! of_kernel "$real"; then
		kind=file
		if [ ! -r "$real" ]; then
			kind=unreadable
		elif size=$(wc -c <"$real" | tr -d ' ') && [ "$size" -le "$most" ]; then
			sum=$(digest "$real")
		fi
	fi
	unset IFS
	say
	encode "$real"
	printf 'kind=%s\nsize=%s\nsum=%s\nreal=%s\n' "$kind" "$size" "$sum" "$encoded"
	printf '\n%s:over\n' "$mark"
}

# fetch prints the first bytes of a file, which is opened once.
fetch() {
	receive
	open_paths
	say
	head -c "$size" <&4
	printf '\n%s:over\n' "$mark"
}

# put writes the rest of its input to a file, as a whole or not at all, if the file is still the one that its user has
# seen. The path has no links. A new file is its owner's alone; a replaced one keeps its permissions.
put() {
	place
	folder=${file%/*}
	[ "$(cd -- "$folder/" 2>/dev/null && pwd -P)" = "${folder:-/}" ] && [ ! -L "$file" ] || refuse changed
	new=$folder/.countersign-$id
	rm -f -- "$new".* 2>/dev/null # of a try that was cut off
	new=$new.$$
	trap 'rm -f -- "$new"' EXIT
	trap 'exit 1' HUP INT TERM
	{ [ -z "$was" ] || cp -p -- "$file" "$new"; } 2>/dev/null || refuse unwritten
	{ cat >"$new"; } 2>/dev/null || refuse unwritten
	[ "$(digest "$new")" = "$sum" ] || refuse cut
	if [ -n "$was" ]; then
		[ -f "$file" ] && [ "$(digest "$file")" = "$was" ] || refuse changed
		mv -f -- "$new" "$file" 2>/dev/null || refuse unwritten
	else
		[ ! -e "$file" ] || refuse changed
		# a link cannot replace what another program makes meanwhile; some file systems have none
		ln -- "$new" "$file" 2>/dev/null || { [ ! -e "$file" ] && mv -- "$new" "$file"; } 2>/dev/null || refuse unwritten
	fi
	say
	printf '\n%s:over\n' "$mark"
}

verb=$1
case $verb in
facts | fetch | program | put | probe | stage | start | attach | input | stop | settle | inside | bare | shell | hold | login | resize | close) "$verb" ;;
*)
	echo "keeper: it has no verb $verb" >&2
	exit 64
	;;
esac
