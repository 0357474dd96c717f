package main

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// compile builds the server with the go command, and returns the path of the program. While it compiles, it writes to
// out how many of the packages are done. Messages of the go command go to out too.
func compile(tool string, out io.Writer) (program string, err error) {
	dir, stale, err := plan(tool, out)
	if err != nil {
		return "", err
	}
	if program, err = place(dir); err != nil {
		return "", err
	}
	fmt.Fprintln(out, announcement(len(stale)))
	// Without -buildvcs=false, each commit would link the program again.
	build := exec.Command(tool, "build", "-v", "-buildvcs=false", "-o", program, server)
	build.Stdout = out
	said, err := build.StderrPipe()
	if err == nil {
		err = build.Start()
	}
	if err != nil {
		return "", fmt.Errorf("running go build: %w", err)
	}
	progress(said, out, stale)
	return program, build.Wait()
}

// plan returns the folder of the server's source, and the import paths of all packages that must be compiled.
func plan(tool string, out io.Writer) (dir string, stale map[string]bool, err error) {
	list := exec.Command(tool, "list", "-deps", "-f", "{{.Stale}}\t{{.ImportPath}}\t{{.Dir}}", server)
	list.Stderr = out
	printed, err := list.Output()
	if err != nil {
		return "", nil, err
	}
	stale = map[string]bool{}
	for line := range bytes.Lines(printed) {
		f := strings.Split(strings.TrimSpace(string(line)), "\t")
		if len(f) != 3 {
			return "", nil, fmt.Errorf("go list printed %q; expected a flag, an import path and a folder", line)
		}
		dir = f[2] // the server is the last one
		// The program itself is always stale for go list, which does not know where it is.
		if f[0] == "true" && f[1] != server {
			stale[f[1]] = true
		}
	}
	return dir, stale, nil
}

// place returns the path of the program in the user's cache. Each copy of the source has a path of its own.
func place(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil { // there is no home
		cache = os.TempDir()
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, source) // never fails
	dir := filepath.Join(cache, "countersign", fmt.Sprintf("dev-%x", h.Sum64()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for the local server's program: %w", err)
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(dir, "countersign-dev.exe"), nil
	}
	return filepath.Join(dir, "countersign-dev"), nil
}

func announcement(packages int) string {
	switch {
	case packages == 0:
		return "Starting the local server."
	case packages < 200:
		return fmt.Sprintf("Compiling %d packages of the local server.", packages)
	}
	return fmt.Sprintf("Compiling %d packages of the local server: a minute or two the first time, "+
		"a second or two afterwards.", packages)
}

// progress reads the messages of go build until it ends. It writes a line for each tenth of the packages, and passes on
// all messages that are not names of packages.
func progress(said io.Reader, out io.Writer, stale map[string]bool) {
	all := len(stale)
	done := 0
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		name := lines.Text()
		if !stale[name] {
			if name != server {
				fmt.Fprintln(out, name)
			}
			continue
		}
		done++
		if tenth := done * 10 / all; all >= 200 && tenth > (done-1)*10/all && tenth < 10 {
			fmt.Fprintf(out, "Compiled %d of %d packages.\n", done, all)
		}
	}
	_, _ = io.Copy(out, said) // a line that is too long ends the scanner
}
