package fakedocker

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// work is the only folder that a container has.
const work = "/work"

// root returns the folder of a container.
func (e *Engine) root(id string) string { return filepath.Join(e.dir, id) }

// addFiles makes the folder of a container.
func (e *Engine) addFiles(id string) error {
	if e.o.Files == nil {
		return nil
	}
	for name, content := range e.o.Files {
		at := filepath.Join(e.root(id), work, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(content), 0o600))
		if err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(e.root(id), work), 0o700)
}

// feeding returns two functions that run a process with input once. feed runs it with its input. finish runs it without
// input, if its connection broke before feed was called.
func (e *Engine) feeding(p *process) (feed func(io.Reader) (string, string, bool), finish func()) {
	var once sync.Once
	feed = func(in io.Reader) (stdout, stderr string, answers bool) {
		once.Do(func() {
			input, _ := io.ReadAll(in) // the client may have disconnected
			f := e.next(ExecInput)
			if slices.Contains(early, f.Kind) {
				input = input[:len(input)/2]
			}
			answers = f.Kind == fakegoogle.None
			e.mu.Lock()
			defer e.mu.Unlock()
			stdout, stderr = e.run(p, input)
		})
		return stdout, stderr, answers
	}
	return feed, func() { feed(strings.NewReader("")) }
}

var early = []fakegoogle.Kind{fakegoogle.StatusBefore, fakegoogle.ResetBefore, fakegoogle.HangBefore}

// run runs a process to its end with the programs of this machine. Arguments that are paths in /work, or its parent,
// lead to the container's folder; other texts stay as they are. The deed records what the process wrote.
func (e *Engine) run(p *process, in []byte) (stdout, stderr string) {
	root := e.root(p.container)
	command := slices.Clone(p.command)
	for i, word := range command {
		if word == "/" || word == work || strings.HasPrefix(word, work+"/") {
			command[i] = filepath.Join(root, word)
		}
	}
	before := written(root)
	var out, errs bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...) // #nosec G204 -- the command of a test
	cmd.Dir, cmd.Env = filepath.Join(root, work), []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	err := cmd.Run()
	p.running, p.exit = false, cmd.ProcessState.ExitCode()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		p.exit = 127
	}
	i := slices.IndexFunc(e.deeds, func(d Deed) bool { return d.Process == p.id })
	e.deeds[i].Wrote = map[string]string{}
	for name, f := range written(root) {
		if was, had := before[name]; !had || !os.SameFile(was.FileInfo, f.FileInfo) || was.content != f.content {
			e.deeds[i].Wrote[name] = f.content
		}
	}
	return out.String(), errs.String()
}

type file struct {
	fs.FileInfo
	content string
}

// written returns the files of a container. A file that was written again counts as a new one, even with the same
// content.
func written(root string) map[string]file {
	all := map[string]file{}
	at := filepath.Join(root, work)
	_ = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error { // a container may be gone
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path) // #nosec G304 -- a file of a test
		name, _ := filepath.Rel(at, path)
		all[name] = file{info, string(content)}
		return err
	})
	return all
}
