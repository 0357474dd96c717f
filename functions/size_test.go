package functions_test

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// bounds limits the work of an instance before its first answer. Everything is counted and not timed, so a busy machine
// makes no difference.
type bounds struct {
	binary int64 // bytes
	heap   int   // bytes allocated by the initialisation of its packages
	allocs int   // number of those allocations
}

// The limits of a function that links every part except the planner's own, and of a function of the planner, which acts
// at GitHub and runs containers: the clients of those APIs take 8 MB. Sizes of other parts:
//   - the shell grammar and the table of read-only commands, in functions that evaluate commands, and the
//     converter from web pages to Markdown, in functions that move operators' agents: 2 MB
//   - receipts, in functions that answer users: 0.1 MB; listing, changing and
//     answering events, busy times, and searching, reading, drafting, labelling and answering e-mails: 0.9 MB
//   - the MCP client, in functions that move the assistant's runs: 1.5 MB
//   - traces, in functions that call a model: 0.8 MB; metrics, in functions that change runs: 0.1 MB
//   - the check of a stranger's schema and of older copies of the store, in functions that move runs: 0.1 MB each,
//     and some allocations in chat
//   - the check of device keys, in functions that read users, and e-mails, in functions that resume runs: less than
//     0.1 MB each
//   - the detection of links and disguised copies, mostly the list of public suffixes, in functions that move runs:
//     0.1 MB
//   - the comparison of a card with an earlier one, the revocation of cards by a user's message, and a card's local
//     times, in functions that move runs: 0.1 MB
//   - the comparison of a commit's files with their branch, edits in containers, and the reading of checks, in the
//     planner's functions: 0.8 MB
//   - model calls beside their commits, and the import of a typed answer's schema, in functions that move runs: 0.2 MB
//   - files of a prompt, fallback models, calls that are postponed, and replies to reviews with the logs of jobs, in
//     functions that move runs: 0.2 MB
//   - pictures of answers, in functions that move runs: less than 0.1 MB
//   - the group names in package paths, which every symbol has: 0.1 MB
//   - the labels of e-mails, files over HTTP, types of files by content, and the tools for notes: 0.4 MB
//   - the connection to the package hosts, over HTTP/2, in the function that moves plans: 0.4 MB
//   - other events at the time of a new one, models that a request chooses, streamed thoughts, and coordinates in a
//     picture: 0.1 MB
//   - signed decisions, senders of an account, host certificates and jump hosts, in functions that move runs: 0.2 MB
//   - files to and from hosts, searches and tests that run without approval, streams and schemas in more forms, and
//     decisions signed with Cloud KMS, in functions that move runs: 0.4 MB
//   - the search for a call at its provider after a restore, in the function that has all tools: 0.1 MB
//   - uploaded files, with the generated client of Cloud Storage, in functions that move runs: 0.8 MB
//   - waits for a model without capacity, times of errors as instants, and wider checks of commands and texts: 0.2 MB
//   - the quota of a model that all instances share, and the fields of a later release: 0.1 MB
//   - audio and video by content, and the limit on files in requests, in functions that move runs, and uploaded files,
//     in the functions of pages: less than 0.1 MB each
//   - copies in look-alike alphabets and more encodings, pinned programs, hosts and accounts bound to their
//     confirmed values, and numbers as they are written, in functions that move runs: 0.1 MB
//   - files of e-mails, with their upload to Gmail, in functions that move runs: 0.1 MB
//   - the forms in which gateways write answers, and the search for them: less than 0.1 MB
//   - the quota of Gmail that all instances share, texts in UTF-7, files in answers and for Vertex AI, and review
//     comments that become plans: 0.1 MB
//   - facts that a yes rests on, read again before the call, in functions that move runs: less than 0.1 MB
//   - the check of passkeys before a call, and the rules about decisions that need one: 0.1 MB
//   - preferences of users, lone surrogates in people's texts, and wider checks of commands and texts: 0.1 MB
var (
	ofAll   = bounds{41.3e6, 2.9e6, 9_640}
	ofPlans = bounds{49.0e6, 3.5e6, 14_090}
	ofHosts = bounds{40.4e6, 2.9e6, 9_640} // includes SSH
)

// maxStatic is the maximum memory for variables that begin as zero. A table that is computed at the start without
// allocating would show up here. Go's own take 33.6 MB of it.
const maxStatic = 34.2e6

// TestSize builds the functions that link every part, and those that serve pages.
func TestSize(t *testing.T) {
	realpart.Long(t, "it links some functions")
	most := map[string]bounds{"run": ofAll, "stream": ofAll, "resume": ofAll, "resume-terminal": ofHosts,
		"resume-plan": ofPlans, "chat": {34.1e6, 2.35e6, 6_950}, "web": {33.4e6, 0.9e6, 2600}}
	bins := buildAlone(t, slices.Collect(maps.Keys(most))...)
	for f, most := range most {
		bin := filepath.Join(bins, f)
		info, err := os.Stat(bin)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most.binary {
			t.Errorf("%s has %.1f MB, more than %.1f: see `go tool nm -size` for what was added, and go.mod for what "+
				"was left out", f, float64(info.Size())/1e6, float64(most.binary)/1e6)
		}
		if n := static(t, bin); n > maxStatic {
			t.Errorf("%s has %.1f MB of variables, more than %.1f", f, float64(n)/1e6, maxStatic/1e6)
		}
		inits, heap, allocs := initialised(t, bin, f)
		for range 4 { // how often a map grows depends on its seed, which differs at each start, by up to 0.3 %
			if again, h, n := initialised(t, bin, f); n < allocs {
				inits, heap, allocs = again, h, n
			}
		}
		if heap > most.heap || allocs > most.allocs {
			t.Errorf("%s allocates %d bytes in %d pieces before it begins, and %d in %d are the most; the largest:\n%s",
				f, heap, allocs, most.heap, most.allocs, strings.Join(inits[:10], "\n"))
		}
	}
}

// initialised returns the allocations of each package's initialisation, largest first, and the totals. A wrong setting
// ends the program when the last package, the function's own, is initialised.
func initialised(t *testing.T, bin, name string) (inits []string, heap, allocs int) {
	cmd := exec.Command(bin)
	cmd.Env = []string{"FUNCTION_TARGET=" + name, "MAX_MODEL_CALLS=many", "GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("%s was to end by its setting", name)
	}
	size := map[string]int{}
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		in, ok := readInit(s.Text())
		if ok {
			heap, allocs, size[s.Text()] = heap+in.bytes, allocs+in.allocs, in.bytes
		}
	}
	inits = slices.SortedFunc(maps.Keys(size), func(a, b string) int { return cmp.Compare(size[b], size[a]) })
	if len(inits) < 10 {
		t.Fatalf("no trace of the initialisation: %s", out)
	}
	return inits, heap, allocs
}

// An initOf is the cost of initialising one package.
type initOf struct {
	ms            float64
	bytes, allocs int
}

// readInit reads a line of a trace, such as "init net/http @1.2 ms, 0.034 ms clock, 7000 bytes, 12 allocs".
func readInit(line string) (in initOf, ok bool) {
	var pkg string
	var at float64
	n, _ := fmt.Sscanf(line, "init %s @%g ms, %g ms clock, %d bytes, %d allocs", &pkg, &at, &in.ms, &in.bytes,
		&in.allocs)
	return in, n == 5
}

// static returns the number of bytes of variables that begin as zero, or 0 on systems whose programs are not in Linux's
// format.
func static(t *testing.T, bin string) (n uint64) {
	if runtime.GOOS != "linux" {
		return 0
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOBITS && s.Flags&elf.SHF_TLS == 0 {
			n += s.Size
		}
	}
	return n
}
