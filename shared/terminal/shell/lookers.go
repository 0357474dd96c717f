package shell

import (
	"strings"
	"sync"
)

// A looker is a program that only reads, with its permitted arguments. All other arguments need an approval. Long flags
// must be written in full: an abbreviation can mean another flag in another version.
//
// Systems differ in whether a flag takes a value. Two rules follow. If an operand has an effect (date and hostname set
// something), no flag takes its value from a separate word, which another system could read as an operand. If operands
// are files whose content is printed, no value may be such a file, because BSD reads every word after the first operand
// as an operand.
type looker struct {
	short   string // flags of one letter that can be combined after one dash
	valued  string // flags of one letter with a value, in the same word or the next
	joined  string // flags of one letter with a value in the same word only
	apart   string // flags of one letter with a value in the next word only
	texts   string // flags of one letter with any text as their value
	counts  bool   // the values of these flags are counts, and a count with a dash is a flag of its own (-20)
	long    string // flags with long names; name= has a value
	next    string // those of long whose value may be the next word
	values  func(string) bool
	operand func(string) bool // checks each operand
	least   int               // minimum number of operands
	most    int               // maximum number of operands, or anyNumber
	pattern bool              // the first operand is a pattern to search for
	content bool              // the program prints the content of the operands
	walks   string            // flags that make it examine everything below folders; or always
	files   bool              // the operands must be files, because it reads the content of a folder
	stays   string            // flags that then keep it on one file system
}

const always = "*"

const anyNumber = -1 // of operands

// lookers is the table of programs that may run without approval. A program belongs here only if no permitted argument
// makes it write, connect, wait, or run another program. It runs without a home directory and without exported
// variables. Programs that read an active configuration from elsewhere, as git does from a repository, are not here:
// see [Repository]. testdata/lookers.txt has a command for each program, which a test runs next to such configurations.
var lookers = map[string]looker{
	"arch": {},
	"cat": {short: "AbeEnstTuv", operand: isPath, least: 1, most: anyNumber, content: true,
		long: "number show-all"},
	"date": {short: "uRI", valued: "d", values: isDay, operand: isFormat, most: 1,
		long: "iso-8601 iso-8601= rfc-3339= utc rfc-email date="},
	"df":    {short: "hHTiaklPm", valued: "tx", operand: isPath, most: anyNumber, long: dfFlags},
	"cksum": {operand: isPath, least: 1, most: anyNumber, content: true},
	"cmp":   {short: "bls", operand: isPath, least: 2, most: 2, content: true},
	"diff": {short: "aBbcdEiqstuwyZ", operand: isPath, least: 2, most: 2, content: true, files: true,
		long: "brief ignore-all-space ignore-blank-lines ignore-case ignore-space-change minimal " +
			"report-identical-files side-by-side text unified unified= context context= width="},
	"dirname": {operand: isPath, least: 1, most: anyNumber},
	"du": {short: "0abcDHhklmPSsx", valued: "dBt", operand: isPath, most: anyNumber, walks: always, stays: "x",
		long: duFlags},
	"egrep":  grep,
	"fgrep":  grep,
	"free":   {short: "hbkmgtlwv", long: "human bytes kilo mega giga mebi gibi total lohi wide si"},
	"grep":   grep,
	"groups": {operand: isName, most: anyNumber},
	"head": {short: "qvz", valued: "nc", counts: true, operand: isPath, least: 1, most: anyNumber, content: true,
		long: "lines= bytes= quiet verbose"},
	"hostname": {short: "Is", long: "all-ip-addresses short"}, // the other flags ask a name server
	"id":       {short: "ugGnrzZ", long: "user group groups name real", operand: isName, most: anyNumber},
	"logname":  {},
	"ls": {short: "aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1", operand: isPath, most: anyNumber, walks: "R",
		long: lsFlags},
	"lsblk": {short: "abdfilmnpStzJr", valued: "o", values: isColumns,
		long: "all bytes fs json list output= paths tree"},
	"lscpu":  {short: "abeJpy", long: "json"},
	"lsmod":  {},
	"lspci":  {short: "kmntv"},
	"lsusb":  {short: "tv"},
	"md5sum": {short: "btz", operand: isPath, least: 1, most: anyNumber, content: true},
	"nproc":  {long: "all"},
	"ps": {short: "AadfFjlHLTwxycZ", apart: "opuUCGt", values: isColumns, operand: isBSD, most: 1,
		long: psFlags},
	"pwd":       {short: "LP"},
	"readlink":  {short: "femnqsvz", operand: isPath, least: 1, most: anyNumber},
	"realpath":  {short: "emLPqsz", operand: isPath, least: 1, most: anyNumber},
	"sha1sum":   {short: "btz", operand: isPath, least: 1, most: anyNumber, content: true},
	"sha256sum": {short: "btz", operand: isPath, least: 1, most: anyNumber, content: true},
	"sha512sum": {short: "btz", operand: isPath, least: 1, most: anyNumber, content: true},
	"ss": {short: "abeHilmnOopstuwx46",
		long: "all listening tcp udp unix processes numeric summary extended options memory info"},
	"stat": {short: "Lftx", valued: "c", values: hasPercent, operand: isPath, least: 1, most: anyNumber,
		long: "dereference file-system terse format= printf="},
	"tail": {short: "qvz", valued: "nc", counts: true, operand: isPath, least: 1, most: anyNumber, content: true,
		long: "lines= bytes= quiet verbose"},
	"tty":    {short: "s"},
	"uname":  {short: "amnprsvio", long: "all kernel-name nodename kernel-release kernel-version machine"},
	"uptime": {short: "ps", long: "pretty since"},
	"users":  {},
	"vmstat": {short: "adfmnstw"},
	"w":      {short: "hsfio", operand: isName, most: 1},
	"wc": {short: "clmwL", operand: isPath, least: 1, most: anyNumber, content: true,
		long: "bytes chars lines max-line-length words"},
	"which":  {short: "a", operand: isName, least: 1, most: anyNumber},
	"who":    {short: "abdHlmpqrstTu"},
	"whoami": {},
}

// grep has neither -R, which follows links, nor -f, because the content of its file could be guessed. (ls and du lack
// -L for the same reason: it follows links.) With -e, some systems would read the pattern as a file, so -e needs GNU
// grep, as -r does. On OpenBSD, -C takes no value from the next word.
var grep = looker{short: "abcEFGhHiIlLnoPqrsvwxyzTZ", valued: "ABm", joined: "C", counts: true, operand: isPath,
	least: 2, most: anyNumber, pattern: true, content: true, walks: "re",
	long: "ignore-case count extended-regexp fixed-strings basic-regexp line-number invert-match " +
		"word-regexp line-regexp files-with-matches files-without-match only-matching recursive with-filename " +
		"no-filename quiet silent no-messages max-count= after-context= before-context= context= include= exclude= " +
		"exclude-dir= color color= text null no-group-separator"}

const (
	lsFlags = "all almost-all author block-size= color color= classify classify= directory file-type full-time " +
		"group-directories-first human-readable si inode size sort= time= time-style= reverse recursive no-group " +
		"numeric-uid-gid hide= ignore= indicator-style= quote-name width= zero context"
	dfFlags = "human-readable si inodes all total print-type local type= exclude-type= output output= portability " +
		"block-size="
	duFlags = "human-readable si summarize total all bytes apparent-size max-depth= one-file-system separate-dirs " +
		"threshold= exclude= time time= time-style= null inodes block-size= no-dereference count-links"
	psFlags = "sort= forest no-headers headers pid= ppid= user= format= cols= columns= width= rows= lines= deselect"
)

// forms are whole commands that only read, of programs whose other commands do more. NAME is one name, COLUMNS is a
// list of columns of ps, and SORT is --sort= with such a list.
//
// The flag -e of ps is allowed only here, where it means all processes. If ps cannot parse its words, it parses those
// with a dash again as BSD letters, and then e shows the environment of each process. The forms below are valid in the
// first reading, or invalid in both. ps reads -aux as BSD letters on purpose.
var forms = []string{
	"ps -e", "ps -ef", "ps -eF", "ps -eLf", "ps -ef --forest", "ps -ef SORT", "ps -eF SORT", "ps -e -o COLUMNS",
	"ps -e -o COLUMNS SORT", "ps -eo COLUMNS", "ps -eo COLUMNS SORT", "ps -eo COLUMNS --no-headers",
	"ps -eo COLUMNS --no-headers SORT", "ps -eo COLUMNS SORT --no-headers", "ps -aux", "ps -aux SORT",
	"git rev-parse --git-dir", "git rev-parse --absolute-git-dir", "git rev-parse --git-common-dir",
	"bash --version", "docker --version", "git --version", "nginx -v", "node --version",
	"perl --version", "php --version", "python3 --version", "ruby --version",
	"dpkg -l", "dpkg -l NAME", "dpkg -L NAME", "dpkg -s NAME",
	"getenforce", "hostnamectl", "hostnamectl status", "locale", "locale -a", "lsb_release -a", "mount", "sw_vers",
	"timedatectl", "timedatectl status", "top -b -n 1", "top -bn1", "top -l 1",
	"systemctl --failed --no-pager", "systemctl --failed", "systemctl is-system-running",
	"docker ps", "docker ps -a", "docker ps -q", "docker ps -aq", "docker images", "docker image ls",
	"docker container ls", "docker container ls -a", "docker volume ls", "docker network ls", "docker system df",
	"docker version", "docker stats --no-stream",
}

// formsOf returns the forms as words, by the program's name.
var formsOf = sync.OnceValue(func() map[string][][]string {
	of := map[string][][]string{}
	for _, f := range forms {
		argv := strings.Fields(f)
		of[argv[0]] = append(of[argv[0]], argv)
	}
	return of
})
