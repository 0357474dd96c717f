package flaky

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed late/late.go
var late []byte

// One in oneIn points delays, up to the given number of times.
const (
	oneIn = 5
	times = 3
)

// delays are the places at which the tests of a module can be delayed.
type delays struct {
	overlay string         // the file that maps sources to their changed copies
	only    *regexp.Regexp // the names of all points that delay; nil: a random choice
	points  []string       // file:line:column
}

// tree is the module of the working folder.
type tree struct{ Path, Dir string }

// delayed writes copies of the module's sources with calls of late.At into the folder.
func delayed(ctx context.Context, dir, only string) (*delays, error) {
	d := &delays{overlay: filepath.Join(dir, "overlay.json")}
	if only != "" {
		var err error
		if d.only, err = regexp.Compile(only); err != nil {
			return nil, err
		}
	}
	m, files, err := sources(ctx)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{filepath.Join(m.Dir, "late/late.go"): filepath.Join(dir, "late.go")}
	if err := os.WriteFile(filepath.Join(dir, "late.go"), late, 0o600); err != nil {
		return nil, err
	}
	for i, file := range files {
		text, err := d.change(m, file)
		if err != nil {
			return nil, err
		}
		if text == nil {
			continue
		}
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[file], text, 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return d, os.WriteFile(d.overlay, list, 0o600)
}

// sources returns the module and its Go files.
func sources(ctx context.Context) (m tree, files []string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-json=Path,Dir").Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return m, nil, err
	}
	const each = `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}` +
		`{{range .TestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	out, err = exec.CommandContext(ctx, "go", "list", "-f", each, m.Path+"/...").Output()
	return m, strings.Fields(string(out)), err
}

// change returns the file's text with a call of At at each of its points, or nil if it has none. Line numbers stay the
// same. change returns nil for the file of At itself, which this package's tests embed.
func (d *delays) change(m tree, file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil || bytes.Equal(text, late) {
		return nil, err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := pointsOf(f)
	if len(found) == 0 {
		return nil, nil
	}
	name, err := filepath.Rel(m.Dir, file)
	if err != nil {
		return nil, err
	}
	var changed []byte
	end := set.Position(f.Name.End()).Offset
	changed = fmt.Appendf(append(changed, text[:end]...), "; import late_ %q", path.Join(m.Path, "late"))
	for _, p := range found {
		at := set.Position(p.pos)
		changed = append(changed, text[end:at.Offset]...)
		point := fmt.Sprintf("%s:%d:%d", filepath.ToSlash(name), at.Line, at.Column)
		d.points = append(d.points, point)
		changed = fmt.Appendf(changed, p.form, fmt.Sprintf("late_.At(%q)", point))
		end = at.Offset
	}
	return append(changed, text[end:]...), nil
}

// choose writes the delays of the round with the seed into the file. Among oneIn consecutive seeds that begin at a
// multiple of oneIn, exactly one chooses each point.
func (d *delays) choose(file string, seed uint64) error {
	var lines []byte
	for _, name := range d.points {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(name))
		random := rand.New(rand.NewPCG(seed/oneIn, hash.Sum64()))
		chosen := random.Uint64N(oneIn) == seed%oneIn
		if d.only != nil {
			chosen = d.only.MatchString(name)
		}
		if !chosen {
			continue
		}
		lines = append(lines, name...)
		for range times {
			lines = fmt.Append(lines, " ", 100+random.IntN(500))
		}
		lines = append(lines, '\n')
	}
	return os.WriteFile(file, lines, 0o600)
}

// passed returns the names of the points that delayed a program with this file.
func passed(file string) []string {
	log, _ := os.ReadFile(file + ".log") // there is none if nothing was delayed
	names := strings.Fields(string(log))
	slices.Sort(names)
	return slices.Compact(names)
}
