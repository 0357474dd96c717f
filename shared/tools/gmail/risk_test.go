package gmail

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

// zipped is an archive with empty files of these names.
func zipped(t *testing.T, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRisk(t *testing.T) {
	const ole = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	encrypted := []byte(zipped(t, "a.txt"))
	central := bytes.Index(encrypted, []byte("PK\x01\x02"))
	encrypted[central+8] |= 1
	for name, c := range map[string]struct{ file, data, risk string }{
		"a text":                     {"a.txt", "MIT licence", ""},
		"a PDF":                      {"offer.pdf", "%PDF-1.7", ""},
		"a picture":                  {"a.png", "\x89PNG\r\n", ""},
		"an Office document":         {"a.docx", zipped(t, "word/document.xml"), ""},
		"an archive":                 {"a.zip", zipped(t, "a/b.txt", ".sh"), ""},
		"a program by its name":      {"invoice.pdf.exe", "x", "program"},
		"capitals":                   {"A.SCR", "x", "program"},
		"a name that ends in a dot":  {"a.exe. ", "x", "program"},
		"a program by its content":   {"invoice.pdf", "MZ\x90\x00", "program"},
		"a program of Linux":         {"report", "\x7fELF\x02", "program"},
		"a program of macOS":         {"report", "\xcf\xfa\xed\xfe", "program"},
		"a script":                   {"notes.txt", "#!/bin/sh\n", "program"},
		"a link of Windows":          {"notes", "L\x00\x00\x00\x01\x14\x02\x00", "program"},
		"a disk image":               {"a.iso", "x", "program"},
		"macros by the name":         {"a.xlsm", "x", "macros"},
		"macros by the content":      {"a.docx", zipped(t, "word/document.xml", "word/vbaProject.bin"), "macros"},
		"macros of an old document":  {"a.doc", ole + "..._\x00V\x00B\x00A\x00_\x00P\x00", "macros"},
		"an old document":            {"a.doc", ole + "...", ""},
		"a page":                     {"a.html", "<p>", "web page"},
		"a picture with scripts":     {"a.svg", "<svg>", "web page"},
		"a program in an archive":    {"a.zip", zipped(t, "a.txt", `dir\SETUP.EXE`), "with a program in it"},
		"an archive behind a PDF":    {"a.pdf", "%PDF-1.7\n" + zipped(t, "setup.exe"), "with a program in it"},
		"an encrypted archive":       {"a.zip", string(encrypted), "encrypted"},
		"a cut archive":              {"a.zip", zipped(t, "a.txt")[:40], "not looked at"},
		"an archive of another kind": {"a.rar", "Rar!\x1a\x07\x00", "not looked at"},
	} {
		got := riskOf(c.file, []byte(c.data))
		if c.risk == "" && got != "" || !strings.Contains(got, c.risk) {
			t.Errorf("%s: the risk of %q is %q, want %q", name, c.file, got, c.risk)
		}
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"": "attachment", " a b.pdf ": "a b.pdf", "../../etc/passwd": ".._.._etc_passwd", `C:\a"b`: "C:_a_b",
		"offer\u202efdp.exe": "offer⟨U+202E⟩fdp.exe", "a\r\nBcc: x": "a⟨U+000D⟩⟨U+000A⟩Bcc: x",
		strings.Repeat("ü", 200): strings.Repeat("ü", 100),
	} {
		if got := fileName(name); got != want {
			t.Errorf("fileName(%q) = %q, want %q", name, got, want)
		}
	}
}
