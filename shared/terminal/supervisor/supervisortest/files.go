package supervisortest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// files puts files on the host, looks at them and reads them.
func files(w *world) {
	dir := strings.TrimSpace(w.printed("mkdir -p 'a folder' && cd 'a folder' && pwd -P"))
	first := w.put(dir+"/né w", "\x00\xff\nfirst\n\n", "", nil)
	w.isFile(dir+"/né w", dir+"/né w", first)
	w.put(dir+"/né w", "other", "", supervisor.ErrChanged)
	w.put(dir+"/né w", "other", strings.Repeat("0", 64), supervisor.ErrChanged)
	second := w.put(dir+"/né w", strings.Repeat("second\n", 50_000), first.SHA256, nil)
	w.isFile(dir+"/né w", dir+"/né w", second)
	w.put(dir+"/no/where", "x", "", supervisor.ErrChanged)
	for name, kind := range map[string]supervisor.FileKind{"": supervisor.FileFolder, "/none": supervisor.FileNone,
		"/no/where": supervisor.FileNowhere} {
		if f, err := w.k.File(w.Context(), dir+name); err != nil || f.Kind != kind {
			w.Errorf("%q is %+v, %v; want %s", name, f, err, kind)
		}
	}
	w.printed("cd 'a folder' && ln -s 'né w' link")
	w.isFile(dir+"/link", dir+"/né w", second)
	w.put(dir+"/link", "through a link", second.SHA256, supervisor.ErrChanged)
	if got := w.printed("ls -a 'a folder' | grep -c countersign"); strings.TrimSpace(got) != "0" {
		w.Errorf("%s temporary files are left", got)
	}
	var got bytes.Buffer
	err := w.k.Fetch(w.Context(), dir+"/link", []string{dir + "/né w"}, 14, &got)
	if err != nil || got.String() != "second\nsecond\n" {
		w.Errorf("the beginning is %q, %v", got.String(), err)
	}
	if err := w.k.Fetch(w.Context(), dir+"/link", []string{dir + "/link2"}, 7, &got); !errors.Is(err,
		supervisor.ErrOutside) {
		w.Errorf("a file outside: %v", err)
	}
	if err := w.k.Fetch(w.Context(), dir, []string{dir}, 7, &got); !errors.Is(err, supervisor.ErrSpecial) {
		w.Errorf("a folder: %v", err)
	}
}

// printed returns what a command prints.
func (w *world) printed(command string) string {
	w.Helper()
	text, _ := w.start(w.a(command))
	return text
}

// put writes a file, and returns what the host must report about it.
func (w *world) put(path, content, was string, want error) supervisor.File {
	w.Helper()
	sum := sha256.Sum256([]byte(content))
	p := supervisor.Put{ID: w.a("").ID, Path: path, Content: []byte(content), SHA256: hex.EncodeToString(sum[:]),
		Was: was}
	if err := w.k.Put(w.Context(), p); !errors.Is(err, want) {
		w.Errorf("writing %q: %v, want %v", path, err, want)
	}
	return supervisor.File{Kind: supervisor.FileRegular, Size: int64(len(content)), SHA256: p.SHA256}
}

func (w *world) isFile(path, leads string, want supervisor.File) {
	w.Helper()
	want.Real = leads
	if got, err := w.k.File(w.Context(), path); err != nil || got != want {
		w.Errorf("%q is %+v, %v; want %+v", path, got, err, want)
	}
}
