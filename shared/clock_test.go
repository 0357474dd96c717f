package shared_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/await"
)

// measuring lists functions that make a test depend on the speed of its machine.
var measuring = []string{"time.Sleep", "time.Since", shortBound}

// shortBound is a call that ends before await.Most, or a time limit that does, as a mention.
const shortBound = "short bound"

// The reasons of the exceptions.
const (
	moments  = "it kills a process at several moments; what is asserted holds at each"
	atLeast  = "the time is a lower bound, which a busy machine only exceeds"
	bubbles  = "it is called through an interface or a field, and waits only in bubbles"
	hangs    = "it is a process that hangs until it is killed"
	measures = "it measures for benchmarks; no test compares the result"
	state    = "it waits for a state, in a package of the product, which imports no testkit"
	shorter  = "a time of the product must be longer; what is done within takes some milliseconds"
	silence  = "nothing answers, so that the call ends with its context; on a busy machine it ends sooner"
	endless  = "it ends commands that have no end; what is asserted holds wherever they end"
	compared = "it is compared with another setting; nothing ends"
	example  = "it is the text of an example"
	absence  = "a message that does not come again cannot be awaited; a busy machine only hides one"
)

// mayMeasure are the exceptions.
var mayMeasure = map[string]string{
	"functions/start_test.go: start: time.Since":                                      measures,
	"shared/clock_test.go: TestOutsideBubbles: short bound":                           example,
	"functions/start_test.go: start: time.Sleep":                                      measures,
	"scripts/check/demohost_test.go: TestTerminalOfANewUser: time.Sleep":              moments,
	"scripts/check/kill_test.go: whileAsking: time.Sleep":                             moments,
	"scripts/check/kill_test.go: whileSending: time.Sleep":                            moments,
	"scripts/check/kill_test.go: whileWaiting: time.Sleep":                            moments,
	"scripts/dev/demohost/confined_test.go: FuzzNoCommandLeaves: short bound":         endless,
	"shared/terminal/supervisor/faults_test.go: TestHomeNotWritable: short bound":     endless,
	"shared/terminal/supervisor/supervisortest/supervisortest.go: limit: short bound": endless,
	"shared/terminal/attach/attach_test.go: TestUnreachable: time.Since":              atLeast,
	"shared/countersign/agenttest/agenttest.go: look: time.Sleep":                     state,
	"shared/countersign/context_test.go: TestShell: short bound":                      endless,
	"shared/countersign/eval/eval_test.go: TestAgentOfOnesOwn: short bound":           silence,
	"shared/countersign/stream_test.go: TestDeadline: short bound":                    shorter,
	"shared/countersign/stream_test.go: TestLeaving: short bound":                     bubbles,
	"shared/agent/tool/spec_test.go: TestVersionOfSchema: short bound":                compared,
	"shared/engine/loop/declared_test.go: slowSend: short bound":                      bubbles,
	"shared/engine/loop/env_test.go: behave: time.Sleep":                              bubbles,
	"shared/engine/loop/scenario_test.go: Generate: time.Sleep":                       bubbles,
	"shared/engine/loop/shards_test.go: Sweep: time.Sleep":                            bubbles,
	"shared/engine/loop/shards_test.go: TestSweepOfLargeShard: short bound":           shorter,
	"shared/tools/action/load_test.go: TestLoad: short bound":                         compared,
	"shared/tools/action/remote_test.go: TestRemoteWithoutListener: short bound":      silence,
	"shared/tools/fetch/fetch_test.go: TestBodies: short bound":                       silence,
	"shared/tools/docker/podman_test.go: TestPodmanScriptAfterKill: short bound":      endless,
	"shared/tools/mcpclient/hostile_test.go: TestCallUnanswered: short bound":         silence,
	"shared/tools/mcpclient/main_test.go: children: time.Sleep":                       hangs,
	"shared/tools/mcpclient/main_test.go: deaf: time.Sleep":                           hangs,
	"shared/engine/queue/pubsub/pubsub_test.go: TestResumeCancelled: short bound":     silence,
	"shared/engine/queue/queuetest/queuetest.go: badRunID: time.Sleep":                absence,
	"shared/engine/queue/queuetest/queuetest.go: settles: time.Sleep":                 absence,
	"shared/terminal/remote/check_test.go: TestCheck: time.Since":                     atLeast,
	"shared/terminal/remote/sshd_test.go: TestScanWithoutServer: time.Since":          atLeast,
	"shared/store/embedded/embedded_test.go: TestLocked: short bound":                 silence,
	"shared/store/embedded/embedded_test.go: TestLockedQueue: short bound":            silence,
	"shared/store/firestore/faults_test.go: TestHungServer: short bound":              silence,
	"shared/testkit/figures/figures.go: Since: time.Since":                            measures,
	"shared/accounts/tokenkey/tokenkey_test.go: TestCloudKMS: short bound":            silence,
}

// TestClockInTests keeps tests from the clock of the machine. A test fails by chance on a busy machine if it
// sleeps, compares how long something took, or bounds something by less than await.Most. A test of time runs in a
// bubble of testing/synctest. Other tests wait for a state with testkit/await, or count. Benchmarks measure.
func TestClockInTests(t *testing.T) {
	found := map[string]bool{}
	for dir, files := range testFiles(t, ".", "../scripts", "../functions", "../infra") {
		for _, at := range outsideBubbles(files) {
			found[filepath.Join("shared", dir, at)] = true
		}
	}
	for at := range found {
		if mayMeasure[at] == "" {
			t.Errorf("%s, outside a bubble of testing/synctest", at)
		}
	}
	for at := range mayMeasure {
		if !found[at] {
			t.Errorf("mayMeasure has %q, which is not so", at)
		}
	}
}

// pauses are the ways in which a script that drives a browser waits for a time, or has its page move, and in which it
// depends on how fast its machine is.
var pauses = regexp.MustCompile(
	`waitForTimeout|setTimeout\(\w+, |newContext\(\)|reducedMotion: (null|undefined)` +
		`|timeout: \d|Date\.now\(\) - |performance\.now`)

// TestWaitsInScripts keeps pauses and moving pages out of the scripts that drive browsers: they wait for states,
// never for the end of a motion.
func TestWaitsInScripts(t *testing.T) {
	scripts := 0
	for _, dir := range []string{".", "../scripts"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".mjs" || !strings.Contains(path, "testdata/") {
				return err
			}
			scripts++
			text, err := os.ReadFile(path)
			for _, pause := range pauses.FindAll(text, -1) {
				t.Errorf("%s has %q", path, pause)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if scripts < 20 {
		t.Errorf("only %d scripts were read", scripts)
	}
}

// TestOutsideBubbles finds calls outside bubbles, and nothing else.
func TestOutsideBubbles(t *testing.T) {
	const text = `package x
		func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1); in() }) }
		func TestB(t *testing.T) { bubble(t, func(t *testing.T) { time.Sleep(1) }); both() }
		func TestC(t *testing.T) { time.Sleep(1); bubble(t, both) }
		func TestD(t *testing.T) { synctest.Test(t, deeper) }
		func BenchmarkA(b *testing.B) { measured() }
		func bubble(t *testing.T, do func(t *testing.T)) { synctest.Test(t, func(t *testing.T) { do(t) }) }
		func deeper(t *testing.T) { in() }
		func in() { time.Sleep(1) }
		func both() { time.Since(x) }
		func measured() { time.Since(x) }
		func nobody() { time.Sleep(1) }
		func hasty() { time.After(299 * time.Second); context.WithTimeout(x, 5*time.Minute) }
		func limited() { s.Limit = time.Minute }
		func declared() { x("binding:\n  timeout: 500ms\n"); x("timeout: 30s") }
		func direct() { begins("x", time.Minute); begins("x", 5*time.Minute); beginsAs(1, "x", d) }
		func method() { w.beginsAs(1, "x", time.Minute) }
		func begins(command string, limit time.Duration) { w.beginsAs(1, command, limit) }
		func (w *world) beginsAs(n int, command string, limit time.Duration) { x(Start{Limit: limit}) }
		func free() { x(Start{Limit: 5 * time.Minute}) }`
	f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := outsideBubbles(map[string]*ast.File{"x_test.go": f})
	want := []string{
		"x_test.go: TestC: time.Sleep", "x_test.go: both: time.Since", "x_test.go: declared: short bound",
		"x_test.go: direct: short bound",
		"x_test.go: hasty: short bound", "x_test.go: limited: short bound", "x_test.go: method: short bound",
		"x_test.go: nobody: time.Sleep",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("found are %q, want %q", got, want)
	}
}

// testFiles returns, for each folder, the files that import testing.
func testFiles(t *testing.T, dirs ...string) map[string]map[string]*ast.File {
	t.Helper()
	all := map[string]map[string]*ast.File{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil || !importsTesting(f) {
				return err
			}
			dir, name := filepath.Split(path)
			if all[dir] == nil {
				all[dir] = map[string]*ast.File{}
			}
			all[dir][name] = f
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func importsTesting(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
}

// A mention is a name in a function.
type mention struct {
	name, in string
	file     string
	bubble   bool // it is in an argument of a function that begins a bubble
}

// outsideBubbles returns what the files of one package call of measuring, outside a bubble and outside a benchmark. A
// function is in a bubble if it is mentioned only there.
func outsideBubbles(files map[string]*ast.File) (all []string) {
	begins := map[string]bool{"synctest.Test": true}
	ends := ending(files)
	for _, m := range mentions(files, begins, ends) {
		if m.name == "synctest.Test" && !strings.HasPrefix(m.in, "Test") {
			begins[m.in] = true
		}
	}
	by := map[string][]mention{}
	for _, m := range mentions(files, begins, ends) {
		by[m.name] = append(by[m.name], m)
	}
	for _, name := range measuring {
		for _, m := range by[name] {
			at := fmt.Sprintf("%s: %s: %s", m.file, m.in, name)
			if !covered(m, by, nil) && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// covered reports whether a mention is in a bubble or in a benchmark, or in a function that is mentioned only there.
func covered(m mention, by map[string][]mention, on []string) bool {
	if m.bubble || strings.HasPrefix(m.in, "Benchmark") || slices.Contains(on, m.in) {
		return true
	}
	callers := 0
	for _, caller := range by[m.in] {
		if caller.in == m.in {
			continue
		}
		if callers++; !covered(caller, by, append(on, m.in)) {
			return false
		}
	}
	return callers > 0
}

// mentions returns the names that the functions of the files mention, with those of other packages as pkg.Name.
func mentions(files map[string]*ast.File, begins map[string]bool, ends map[string]int) (all []mention) {
	for file, f := range files {
		for _, d := range f.Decls {
			m := mention{file: file}
			var body ast.Node = d
			if fd, ok := d.(*ast.FuncDecl); ok {
				if m.in = fd.Name.Name; fd.Body == nil {
					continue
				}
				body = fd.Body
			}
			all = append(all, within(body, m, begins, ends)...)
		}
	}
	return all
}

// hasty is a time limit of less than a second in the text of a declaration.
var hasty = regexp.MustCompile(`\btimeout: \d+ms\b`)

func within(n ast.Node, m mention, begins map[string]bool, ends map[string]int) (all []mention) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			m.name = n.Name
			all = append(all, m)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				m.name = x.Name + "." + n.Sel.Name
				all = append(all, m)
			}
		case *ast.BasicLit:
			if hasty.MatchString(n.Value) {
				all = append(all, mention{shortBound, m.in, m.file, m.bubble})
			}
		case *ast.KeyValueExpr, *ast.AssignStmt:
			all = append(all, hurries(n, m, ends)...)
		case *ast.CallExpr:
			all = append(all, hurries(n, m, ends)...)
			inside := m
			inside.bubble = m.bubble || begins[called(n.Fun)]
			all = append(all, within(n.Fun, m, begins, ends)...)
			for _, arg := range n.Args {
				all = append(all, within(arg, inside, begins, ends)...)
			}
			return false
		}
		return true
	})
	return all
}

// called returns the name of the called or multiplied expression: f, or pkg.F.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// hurries returns a mention for each time limit of a node that is known and less than await.Most. A plain number is no
// time.
func hurries(n ast.Node, m mention, ends map[string]int) (all []mention) {
	for _, limit := range limits(n, ends) {
		if d, known := duration(limit); known && d >= time.Millisecond && d < await.Most {
			all = append(all, mention{shortBound, m.in, m.file, m.bubble})
		}
	}
	return all
}

// ending returns the functions that have something end, or happen, after a time, with the index of the time among their
// arguments: those of the standard library, and those of the files that pass a parameter on as a time limit.
func ending(files map[string]*ast.File) map[string]int {
	ends := map[string]int{"time.After": 0, "time.AfterFunc": 0, "time.NewTimer": 0, "time.Tick": 0,
		"context.WithTimeout": 1}
	for before := 0; before < len(ends); {
		before = len(ends)
		for _, f := range files {
			for _, d := range f.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					passesOn(f, ends)
				}
			}
		}
	}
	return ends
}

// passesOn adds a function to ends if one of its parameters is a time limit.
func passesOn(f *ast.FuncDecl, ends map[string]int) {
	at := map[string]int{}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			at[name.Name] = len(at)
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		for _, limit := range limits(n, ends) {
			if name, ok := limit.(*ast.Ident); ok {
				if i, ok := at[name.Name]; ok {
					ends[f.Name.Name] = i
				}
			}
		}
		return true
	})
}

// limits returns the time limits of a node: of a command (supervisor.Start has Limit), a client or a connection.
func limits(n ast.Node, ends map[string]int) (all []ast.Expr) {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if limited(n.Key) {
			all = append(all, n.Value)
		}
	case *ast.AssignStmt:
		for i := range min(len(n.Lhs), len(n.Rhs)) {
			if limited(n.Lhs[i]) {
				all = append(all, n.Rhs[i])
			}
		}
	case *ast.CallExpr:
		at, ok := ends[called(n.Fun)]
		if s, method := n.Fun.(*ast.SelectorExpr); method && !ok {
			at, ok = ends[s.Sel.Name]
		}
		if ok && at < len(n.Args) {
			all = append(all, n.Args[at])
		}
	}
	return all
}

// limited reports whether a field is a time limit.
func limited(field ast.Expr) bool {
	name, _ := field.(*ast.Ident)
	if s, ok := field.(*ast.SelectorExpr); ok {
		name = s.Sel
	}
	return name != nil && (name.Name == "Limit" || name.Name == "Timeout")
}

// duration returns the value of an expression of literals.
func duration(e ast.Expr) (d time.Duration, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.Atoi(e.Value)
		return time.Duration(n), err == nil
	case *ast.SelectorExpr:
		d, known = map[string]time.Duration{"time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
			"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour}[called(e)]
		return d, known
	case *ast.BinaryExpr:
		x, known := duration(e.X)
		y, too := duration(e.Y)
		return x * y, known && too && e.Op == token.MUL
	}
	return 0, false
}
