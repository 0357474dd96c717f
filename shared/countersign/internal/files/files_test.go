package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/countersign/internal/files"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// tree makes a directory, with a folder outside of it that holds the file secret.txt.
func tree(t *testing.T) (d files.Dir, outside string) {
	t.Helper()
	base := t.TempDir()
	dir, outside := filepath.Join(base, "dir"), filepath.Join(base, "outside")
	for name, content := range map[string]string{"dir/a.txt": "a", "dir/sub/b.txt": "b", "dir/.env": "SECRET",
		"dir/.git/config":    "SECRET",
		"dir/sub/server.PEM": "SECRET", "dir/.github/ci.yml": "ci", "outside/secret.txt": "SECRET"} {
		file := filepath.Join(base, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content),
			0o640)); err != nil {
			t.Fatal(err)
		}
	}
	return files.Dir(dir), outside
}

func link(t *testing.T, d files.Dir, name, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(string(d), name)); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
}

func TestReadAndWrite(t *testing.T) {
	d, _ := tree(t)
	for name, want := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "./sub//b.txt": "b",
		".github/ci.yml": "ci"} {
		if got, err := d.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"a.txt", "new.txt", "made/on/the/way.txt"} {
		if err := d.WriteFile(name, []byte("new")); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadFile(name); err != nil || string(got) != "new" {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(string(d), "a.txt")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("a file that was there has the mode %v", info.Mode())
	}
	if _, err := d.ReadFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	entries, err := d.ReadDir(".")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".github", "a.txt", "made", "new.txt", "sub"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the folder has %q, %v", names, err)
	}
}

// The standard library's functions over file systems work on it.
func TestFileSystem(t *testing.T) {
	d, _ := tree(t)
	var seen []string
	err := fs.WalkDir(d, ".", func(path string, e fs.DirEntry, err error) error {
		if !e.IsDir() {
			seen = append(seen, path)
		}
		return err
	})
	if want := []string{".github/ci.yml", "a.txt", "sub/b.txt"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("%q, %v; want seen %v", seen, err, want)
	}
	found, err := fs.Glob(d, "*/*.txt")
	if err != nil || !slices.Equal(found, []string{"sub/b.txt"}) {
		t.Errorf("%q, %v; want found %v", found, err, []string{"sub/b.txt"})
	}
}

func TestForbidden(t *testing.T) {
	d, outside := tree(t)
	link(t, d, "out", outside)
	link(t, d, "relative-out", "../outside")
	link(t, d, "sub/deep-out", "../../outside/secret.txt")
	link(t, d, "root", "/")
	link(t, d, "notes.txt", ".env")
	link(t, d, "history", ".git")
	link(t, d, "self", "self")
	link(t, d, "here", string(d))
	link(t, d, "dangling", "../outside/new.txt")
	forbidden := []string{"../outside/secret.txt", "../../etc/passwd", "sub/../a.txt", "..", "sub/..", "/etc/passwd",
		"/dev/zero",
		filepath.Join(outside, "secret.txt"), "out/secret.txt", "out", "relative-out/secret.txt", "sub/deep-out",
		"root/etc/passwd",
		"here/a.txt", "notes.txt", "history/config", "self", "dangling",
		".env", "./.env", "sub/../.env", ".ENV", ".env.local", ".envrc", ".git/config", ".GIT/config", ".git",
		"sub/.git/x", ".g\u200cit/config",
		".env.", ".env ", ".env::$DATA", "sub/server.PEM", "x.pem:s", "tls.key", "id_rsa", "id_rsa.pub", "id_ed25519",
		".ssh/known_hosts", ".netrc",
		"_netrc", ".aws/credentials", "countersign.db", "countersign.db-wal", "data/countersign.db-shm",
		"token-key.json", "chat-key",
		"config/.gemini.yaml"}
	for _, name := range forbidden {
		if data, err := d.ReadFile(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("reads %q: %q, %v", name, data, err)
		}
		if f, err := d.Open(name); !errors.Is(err, fs.ErrPermission) || f != nil {
			t.Errorf("opens %q: %v", name, err)
		}
		if err := d.WriteFile(name, []byte("OVERWRITTEN")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("writes %q: %v", name, err)
		}
		for what, err := range map[string]error{"removes": d.Remove(name), "moves to": d.Rename("a.txt", name),
			"moves": d.Rename(name, "stolen.txt")} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s %q: %v; want error “%v”", what, name, err, fs.ErrPermission)
			}
		}
	}
	for _, name := range []string{"", "a\x00.txt"} {
		if _, err := d.ReadFile(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("reads %q: %v", name, err)
		}
	}
	if err := filepath.WalkDir(filepath.Dir(string(d)), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("OVERWRITTEN")) {
			t.Errorf("%s was written", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	var p *fs.PathError
	if _, err := d.ReadFile("notes.txt"); !errors.As(err, &p) || p.Path != "notes.txt" ||
		strings.Contains(err.Error(), ".env") {
		t.Errorf("the error tells of more than what was asked for: %v", err)
	}
}

// TestRenameAndRemove moves and deletes files and folders.
func TestRenameAndRemove(t *testing.T) {
	d, _ := tree(t)
	if err := errors.Join(d.Rename("a.txt", "new/folder/c.txt"), d.Rename("new/folder", "moved"),
		d.Rename("moved/c.txt", "sub/b.txt"), d.Remove("moved")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadFile("sub/b.txt"); err != nil || string(got) != "a" {
		t.Errorf("it is %q, %v", got, err)
	}
	for name, c := range map[string]struct{ err, want error }{
		"a file that is gone":  {d.Remove("a.txt"), fs.ErrNotExist},
		"a move of it":         {d.Rename("a.txt", "b.txt"), fs.ErrNotExist},
		"over a folder":        {d.Rename("sub/b.txt", "new"), fs.ErrExist},
		"the directory itself": {d.Remove("."), fs.ErrInvalid},
		"a move of that":       {d.Rename(".", "x"), fs.ErrInvalid},
		"a folder with files":  {d.Remove("sub"), syscall.ENOTEMPTY},
		"no name":              {d.Remove(""), fs.ErrInvalid},
		"a folder into itself": {d.Rename("sub", "sub/deeper"), syscall.EINVAL},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func TestLinksWithin(t *testing.T) {
	d, _ := tree(t)
	link(t, d, "to-b", "sub/b.txt")
	link(t, d, "sub/up", "../a.txt")
	link(t, d, "folder", "sub")
	for name, want := range map[string]string{"to-b": "b", "sub/up": "a", "folder/b.txt": "b", "folder/up": "a"} {
		if got, err := d.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if err := d.WriteFile("folder/up", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadFile("a.txt"); err != nil || string(got) != "new" {
		t.Errorf("what the link leads to is %q, %v", got, err)
	}
}

func TestBounds(t *testing.T) {
	d, _ := tree(t)
	full := bytes.Repeat([]byte("x"), files.MaxSize)
	if err := d.WriteFile("full", full); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadFile("full"); err != nil || len(got) != len(full) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := d.WriteFile("more", append(full, 'x')); !errors.Is(err, files.ErrTooLarge) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(string(d), "more"), append(full, 'x'), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadFile("more"); !errors.Is(err, files.ErrTooLarge) || len(got) > 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	f, err := d.Open("full")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	grown, err := os.OpenFile(filepath.Join(string(d), "full"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = grown.Write(full)
	if err := errors.Join(err, grown.Close()); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(f); !errors.Is(err, files.ErrTooLarge) || all.Len() > files.MaxSize {
		t.Errorf("a file that grows: %d bytes, %v", all.Len(), err)
	}
}

// Only files are read: anything else is refused without waiting.
func TestReadOnlyFiles(t *testing.T) {
	d, _ := tree(t)
	if err := pipe(filepath.Join(string(d), "pipe")); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.ReadFile("pipe")
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	case <-time.After(await.Most):
		t.Fatal("it waits for somebody who writes")
	}
	if _, err := d.ReadFile("sub"); err == nil {
		t.Error("a folder is read as a file")
	}
	if err := d.WriteFile("sub", nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a folder is replaced: %v", err)
	}
	if err := d.WriteFile("a.txt/b", nil); err == nil {
		t.Error("a file has files")
	}
	if left, err := filepath.Glob(filepath.Join(string(d), "*", ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// Even if another process swaps files meanwhile, no secret is read and nothing is written outside.
func TestSwappedLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open there is not replaced")
	}
	d, outside := tree(t)
	at := func(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }
	if err := errors.Join(os.Mkdir(at("good"), 0o755), os.WriteFile(at("good/config"), []byte("fine"), 0o600),
		os.Mkdir(at("good2"), 0o755), os.WriteFile(at("good2/config"), []byte("fine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	link(t, d, "x", "good")
	var swapping sync.WaitGroup
	stop := make(chan struct{})
	swap := func(step func(i int) error) {
		swapping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	put := func(target, name string) error { // a link that replaces the existing entry
		return errors.Join(os.Symlink(target, at(name+".swap")), os.Rename(at(name+".swap"), at(name)))
	}
	swap(func(i int) error { return put([]string{"good", ".git", outside, "../outside"}[i%4], "x") })
	swap(func(i int) error { // a file, then a link of its name
		return errors.Join(os.WriteFile(at("y.swap"), []byte("fine"), 0o600), os.Rename(at("y.swap"), at("y")),
			put(".env", "y"))
	})
	swap(func(i int) error { // a folder, then a link of its name
		return errors.Join(os.Rename(at("good2"), at("z")), os.Rename(at("z"), at("good2")), os.Symlink(".git",
			at("z")), os.Remove(at("z")))
	})
	read := 0
	for i := range 1500 {
		for _, name := range []string{"x/config", "x/secret.txt", "y", "z/config"} {
			data, err := d.ReadFile(name)
			if err == nil {
				read++
			}
			if strings.Contains(string(data), "SECRET") {
				t.Errorf("%s is %q", name, data)
			}
			if i%50 > 0 || name == "z/config" { // a write waits for the disk; and it would make z
				continue
			}
			if err := d.WriteFile(name, []byte("fine")); err != nil && !errors.Is(err, fs.ErrPermission) &&
				!errors.Is(err, fs.ErrNotExist) {
				t.Logf("%s: %v", name, err)
			}
		}
	}
	close(stop)
	swapping.Wait()
	if read == 0 {
		t.Error("nothing could be read at all")
	}
	for _, name := range []string{at(".env"), at(".git/config"), filepath.Join(outside, "secret.txt")} {
		if data, err := os.ReadFile(name); err != nil || string(data) != "SECRET" {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
}

// No name reads outside of the directory, or panics.
func FuzzName(f *testing.F) {
	for _, name := range []string{"a.txt", "../x", "/etc/passwd", "sub/./b.txt", "link/secret.txt", ".env", "a\x00",
		"CON", `..\x`, `C:\x`,
		"sub//b.txt", ".git/config", ".GIT/config", "./.", "", "a.txt/", strings.Repeat("a/", 200), "~/x", "id_rsa:x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, outside := tree(t)
		link(t, d, "link", outside)
		if data, err := d.ReadFile(name); strings.Contains(string(data), "SECRET") {
			t.Errorf("%q is %q, %v", name, data, err)
		}
		_ = d.WriteFile(name, []byte("x"))
		if data, err := os.ReadFile(filepath.Join(outside, "secret.txt")); err != nil || string(data) != "SECRET" {
			t.Errorf("%q wrote outside: %q, %v", name, data, err)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("%q made %v outside, %v", name, left, err)
		}
	})
}
