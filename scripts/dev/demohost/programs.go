package demohost

// programs lists the programs of the machine.
var programs map[string]func(*call) int

func init() { // some of them start others
	programs = map[string]func(*call) int{
		// files
		"ls": list, "tree": tree, "find": find, "cat": cat, "less": cat, "more": cat, "du": diskUsage, "df": diskFree,
		"touch": touch, "truncate": truncate, "mktemp": makeTemp, "mkdir": makeDir, "rmdir": removeDir, "rm": remove,
		"mv": move, "cp": duplicate, "ln": link, "readlink": readLink, "realpath": readLink, "stat": status,
		"file": kindOf, "chmod": chmod, "chown": chown, "chgrp": chown,

		// text
		"head": head, "tail": tail, "tac": reversed, "nl": numbered, "wc": count, "tee": tee, "cut": cut,
		"tr": translate, "grep": grep, "egrep": grep, "fgrep": grep, "sed": sed, "sort": sortLines, "uniq": unique,
		"seq": sequence, "expr": expr, "yes": yes, "xargs": xargs, "basename": pathParts, "dirname": pathParts,
		"sha256sum": digest, "md5sum": digest,

		// the machine
		"ps": processes, "top": top, "htop": top, "uptime": uptime, "free": free, "kill": kill, "pkill": pkill,
		"pgrep": pgrep, "systemctl": systemctl, "service": serviceProgram, "journalctl": journal, "nginx": nginx,
		"apt": apt, "apt-get": apt, "dpkg": dpkg, "uname": uname, "arch": prints("x86_64\n"),
		"nproc": prints("2\n"), "date": date, "hostname": hostName, "hostnamectl": hostnamectl,
		"whoami": prints(user + "\n"), "logname": prints(user + "\n"), "groups": prints(user + "\n"),
		"id": identity, "who": who, "w": who, "users": who, "ss": sockets, "netstat": sockets, "ip": address,
		"lsblk": blocks, "mount": mounts, "vmstat": vmstat,

		// programs that are not simulated
		"curl": offline, "wget": offline, "ping": offline, "ssh": offline, "nano": editor, "vi": editor, "vim": editor,
		"ncdu": editor, "reboot": refused, "shutdown": refused, "poweroff": refused, "halt": refused, "mkfs": refused,
		"mkfs.ext4": refused, "fdisk": refused, "dd": refused,

		// the shell
		"sh": bash, "bash": bash, "dash": bash, "sudo": sudo, "env": env, "printenv": env, "which": which,
		"type": which, "command": command, "builtin": command, "source": source, ".": source, "pwd": workingDir,
		"nohup": prefixed, "setsid": prefixed, "nice": prefixed, "time": prefixed, "timeout": timeout, "sleep": sleep,
		"umask": umask, "ulimit": quiet, "jobs": quiet, "history": quiet, "hash": quiet, "bg": quiet, "fg": quiet,
		"sync": quiet, "clear": prints("\x1b[H\x1b[2J"), "tty": tty, "stty": stty, "true": quiet, "false": failing,
		"echo": own, "printf": own, "test": own, "[": own,
	}
}

// packaged maps programs to the packages that install them.
var packaged = map[string]string{"htop": "htop", "tree": "tree", "ncdu": "ncdu"}
