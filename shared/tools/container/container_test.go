package container_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/tools/container"
)

var bounds = container.Bounds{Files: 4, File: 100, All: 150}

// entry is an entry of an archive.
type entry struct {
	name string
	kind byte
	text string
}

// packed returns an archive of the entries.
func packed(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o644}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Linkname = "/etc/passwd"
		}
		err := w.WriteHeader(h)
		if err == nil {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadTree(t *testing.T) {
	reg := byte(tar.TypeReg)
	for name, c := range map[string]struct {
		entries []entry
		want    string // the files' paths
		leftOut int
	}{
		"a tree":         {[]entry{{"./", tar.TypeDir, ""}, {"./a", reg, "1"}, {"b/c", reg, ""}}, "a b/c", 0},
		"links":          {[]entry{{"a", tar.TypeSymlink, ""}, {"b", tar.TypeLink, ""}, {"c", reg, "1"}}, "c", 2},
		"devices":        {[]entry{{"a", tar.TypeChar, ""}, {"b", tar.TypeFifo, ""}}, "", 2},
		"absolute":       {[]entry{{"/etc/passwd", reg, "1"}}, "", 1},
		"upwards":        {[]entry{{"../a", reg, "1"}, {"a/../../b", reg, "1"}, {"..", reg, "1"}}, "", 3},
		"dots in a name": {[]entry{{"a..b", reg, "1"}}, "a..b", 0},
		"backslashes":    {[]entry{{`..\a`, reg, "1"}}, "", 1},
		"no text":        {[]entry{{"a", reg, "\xff"}, {"b", reg, "a\x00"}}, "", 2},
		"too long":       {[]entry{{"a", reg, strings.Repeat("x", 101)}, {"b", reg, "1"}}, "b", 1},
		"too many": {[]entry{{"a", reg, ""}, {"b", reg, ""}, {"c", reg, ""}, {"d", reg, ""}, {"e", reg, ""}},
			"a b c d", 1},
		"too much": {[]entry{{"a", reg, strings.Repeat("x", 90)}, {"b", reg, strings.Repeat("x", 90)}}, "a", 1},
		"nothing":  {nil, "", 0},
	} {
		tree, err := container.ReadTree(bytes.NewReader(packed(t, c.entries...)), bounds)
		var names []string
		for _, f := range tree.Files {
			names = append(names, f.Path)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want || tree.LeftOut != c.leftOut || tree.Cut {
			t.Errorf("%s: %q, %+v, %v", name, got, tree, err)
		}
	}
}

func TestReadTreeOfBrokenStream(t *testing.T) {
	whole := packed(t, entry{"a", tar.TypeReg, "1"}, entry{"b", tar.TypeReg, "2"})
	tree, err := container.ReadTree(bytes.NewReader(whole[:1100]), bounds)
	if err != nil || len(tree.Files) != 1 || !tree.Cut {
		t.Errorf("%+v, %v", tree, err)
	}
	twice := append(packed(t, entry{"a", tar.TypeReg, "1"}), whole...)
	if tree, err = container.ReadTree(bytes.NewReader(twice), bounds); err != nil || len(tree.Files) != 1 || !tree.Cut {
		t.Errorf("of two archives: %+v, %v", tree, err)
	}
	if _, err := container.ReadTree(strings.NewReader(strings.Repeat("no archive ", 100)), bounds); err == nil {
		t.Error("what is no archive was read")
	}
}

// FuzzReadTree builds archives from short seeds. With seeds as long as an archive, the fuzzer would spend its time on
// shortening them.
func FuzzReadTree(f *testing.F) {
	f.Add("a/b", byte(tar.TypeReg), "1", 0)
	f.Add("../a", byte(tar.TypeReg), "1", 700)
	f.Add("l", byte(tar.TypeSymlink), "", 0)
	f.Fuzz(func(t *testing.T, name string, kind byte, text string, cut int) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for range 2 {
			h := &tar.Header{Name: name, Typeflag: kind, Size: int64(len(text)), Linkname: name}
			if w.WriteHeader(h) != nil {
				return // this cannot be packed
			}
			_, _ = io.WriteString(w, text) // links have no text
		}
		_ = w.Close() // and need not end well
		raw := b.Bytes()
		if cut > 0 {
			raw = raw[:cut%(len(raw)+1)]
		}
		tree, err := container.ReadTree(bytes.NewReader(raw), bounds)
		if err != nil {
			return
		}
		size := 0
		for _, file := range tree.Files {
			size += len(file.Path) + len(file.Content)
			if path.IsAbs(file.Path) || file.Path != path.Clean(file.Path) || file.Path == ".." ||
				strings.HasPrefix(file.Path, "../") || !utf8.ValidString(file.Content) ||
				len(file.Content) > bounds.File {
				t.Errorf("there is %q with %d bytes", file.Path, len(file.Content))
			}
		}
		if len(tree.Files) > bounds.Files || size > bounds.All {
			t.Errorf("%d files of %d bytes", len(tree.Files), size)
		}
	})
}

func TestDemux(t *testing.T) {
	var out, errs bytes.Buffer
	to := container.Streams{Stdout: &out, Stderr: &errs}
	frames := "\x01\x00\x00\x00\x00\x00\x00\x03one\x02\x00\x00\x00\x00\x00\x00\x03two\x01\x00\x00\x00\x00\x00\x00\x00"
	err := container.Demux(to, strings.NewReader(frames))
	if err != nil || out.String() != "one" || errs.String() != "two" {
		t.Errorf("%q, %q, %v; want out.String() “one”, errs.String() “two”", out.String(), errs.String(), err)
	}
	for _, cut := range []string{frames[:5], frames[:9], "\x01\x00\x00\x00\xff\xff\xff\xffx"} {
		if err := container.Demux(to, strings.NewReader(cut)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v; want error “%v”", cut, err, io.ErrUnexpectedEOF)
		}
	}
	for _, odd := range []string{"\x03\x00\x00\x00\x00\x00\x00\x00", "\x01\x01\x00\x00\x00\x00\x00\x00"} {
		if err := container.Demux(to, strings.NewReader(odd)); err == nil {
			t.Errorf("%q is taken for frames", odd)
		}
	}
}

func FuzzDemux(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x03one\x02\x00\x00\x00\x00\x00\x00\x03two"))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffx"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		err := container.Demux(container.Streams{Stdout: &out, Stderr: &out}, bytes.NewReader(raw))
		if out.Len() > len(raw) {
			t.Errorf("%d bytes became %d, %v", len(raw), out.Len(), err)
		}
	})
}

func TestOwnerKey(t *testing.T) {
	a, b := container.Owner{UID: "ana@example.com"}.Key(), container.Owner{UID: "bea@example.com"}.Key()
	if a == b || strings.Contains(a, "ana") || len(a) != 24 {
		t.Errorf("%q and %q", a, b)
	}
}
