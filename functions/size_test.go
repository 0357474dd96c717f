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

// bounds is what an instance may have to read and to do before it answers. All of it is counted, so that a busy machine
// makes no difference.
type bounds struct {
	binary int64 // bytes
	heap   int   // bytes that the initialisation of its packages allocates
	allocs int   // in so many pieces
}

// The bounds of a function that links every part but what only plans have, and of one of plans, which acts at
// GitHub and runs containers, with the clients of their APIs, 8 MB. Each that judges commands has the grammar of
// shells in it, and each that moves operators' agents what makes Markdown of a page of the web, 2 MB. What a
// receipt is made of, each function that answers users has, 0.1 MB, and as much is what lists events and finds
// mails. The client of MCP, 1.5 MB, is in those that move the assistant's runs, and in no other of these. What
// sends traces, 0.8 MB, is in those that ask a model. What checks a stranger's schema rule by rule, and where a
// copy of a store is noticed, has 0.1 MB in each that moves runs, and some allocations in chat. What checks the
// keys of a user's devices, less than 0.1 MB, is in each that reads users, what mails people, as much, in those
// that resume runs, and what measures, 0.1 MB, in each that changes runs. What recognises links and disguised
// copies has 0.1 MB in each that moves runs, of which the list of public suffixes is the most. What relates a card
// to an earlier one, takes cards back at a user's word, and names the moments of a card, has 0.1 MB in each that
// moves runs. The groups in the paths of packages, which each symbol has, take 0.1 MB in each.
var (
	ofAll   = bounds{37.0e6, 2.9e6, 9_500}
	ofPlans = bounds{43.4e6, 3.5e6, 14_000}
	ofHosts = bounds{36.1e6, 2.9e6, 9_500} // which has SSH
)

// maxStatic is the most memory that a program may have for variables that begin as zero: a table that is computed at
// the start and allocates nothing lies there. 33.6 MB of it are Go's own.
const maxStatic = 34.2e6

// TestSize builds the functions that link every part, and those that answer pages.
func TestSize(t *testing.T) {
	realpart.Long(t, "it links some functions")
	most := map[string]bounds{"run": ofAll, "stream": ofAll, "resume": ofAll, "resume-terminal": ofHosts,
		"resume-plan": ofPlans, "chat": {33.6e6, 2.3e6, 6800}, "web": {33.4e6, 0.9e6, 2600}}
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
		for range 4 { // how often a map grows depends on its seed, which each start draws anew
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

// initialised returns what the initialisation of each package of a program allocates, the largest first, and all
// together. A wrong setting ends the program as the last of them begins, its function's own.
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

// An initOf is what the initialisation of one package took.
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

// static returns how many bytes of variables that begin as zero the program has; 0 where programs have another format
// than Linux's.
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
