package attachment_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// encoded returns a small picture as an encoder writes it.
func encoded(t *testing.T, jpg bool) string {
	t.Helper()
	var b bytes.Buffer
	picture := image.NewGray(image.Rect(0, 0, 8, 8))
	err := png.Encode(&b, picture)
	if jpg {
		b.Reset()
		err = jpeg.Encode(&b, picture, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// pngChunk returns a chunk of a PNG, without a valid checksum.
func pngChunk(kind, data string) string {
	return string([]byte{0, 0, byte(len(data) >> 8), byte(len(data))}) + kind + data + "\x00\x00\x00\x00"
}

// riff returns a WebP with a chunk.
func riff(kind, data string) string {
	return "RIFF" + string([]byte{byte(len(data) + 12), 0, 0, 0}) + "WEBP" + kind +
		string([]byte{byte(len(data)), 0, 0, 0}) + data
}

// ftyp returns the first box of a file in the ISO base media format.
func ftyp(major string, others ...string) string {
	all := strings.Join(others, "")
	return string([]byte{0, 0, 0, byte(16 + len(all))}) + "ftyp" + major + "\x00\x00\x00\x00" + all +
		"\x00\x00\x01\x00meta"
}

// track returns a box that names the kind of a movie's track.
func track(handler string) string {
	return "\x00\x00\x00\x20hdlr\x00\x00\x00\x00mhlr" + handler + strings.Repeat("\x00", 12)
}

// webmOf returns the beginning of a WebM with these codings.
func webmOf(codings ...string) string {
	return "\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm" + strings.Repeat("\x00", 40) + strings.Join(codings, "\x00\x86")
}

// TestTypes has the beginnings of files that programs and cameras write. Their names do not matter.
func TestTypes(t *testing.T) {
	ihdr := "\x89PNG\r\n\x1a\n" + pngChunk("IHDR", "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00")
	jpg := encoded(t, true)[2:]
	body := "\n1 0 obj<</Type/Catalog>>endobj\n\xff\x00"
	for name, c := range map[string]struct{ data, mime string }{
		"PDF of Quartz":          {"%PDF-1.3\n%\xc4\xe5\xf2\xe5\xeb\xa7\xf3\xa0\xd0\xc4\xc6" + body, "application/pdf"},
		"PDF of Word":            {"%PDF-1.7\r\n%\xb5\xb5\xb5\xb5" + body, "application/pdf"},
		"PDF of Chrome":          {"%PDF-1.4\n%\xd3\xeb\xe9\xe1" + body, "application/pdf"},
		"PDF of pdfTeX":          {"%PDF-1.5\n%\xd0\xd4\xc5\xd8" + body, "application/pdf"},
		"PDF 2.0":                {"%PDF-2.0\n%\xe2\xe3\xcf\xd3" + body, "application/pdf"},
		"PDF of Oracle Reports":  {"\ufeff%PDF-1.4" + body, "application/pdf"},
		"PDF after a line":       {"\r\n\t\t \r\n%PDF-1.4" + body, "application/pdf"},
		"PDF after other bytes":  {"\n\xf2\xc0%PDF-1.4" + body, "application/pdf"},
		"PDF after HTTP headers": {"Content-Type: application/pdf\r\n\r\n%PDF-1.4" + body, "application/pdf"},
		"PDF that is HTML too":   {"%PDF-1.7\n<html><script>alert(1)</script>", "application/pdf"},
		"text about PDF":         {"A file begins with %PDF-1.7.\n", "text/plain"},
		"PNG of an encoder":      {encoded(t, false), "image/png"},
		"PNG with text chunks":   {ihdr + pngChunk("tEXt", "Comment\x00<script>"), "image/png"},
		"APNG":                   {ihdr + pngChunk("acTL", "\x00\x00\x00\x02\x00\x00\x00\x00"), "image/png"},
		"PNG that is a ZIP too":  {encoded(t, false) + "PK\x03\x04", "image/png"},
		"JPEG of an encoder":     {encoded(t, true), "image/jpeg"},
		"JPEG with Exif":         {"\xff\xd8\xff\xe1\x00\x08Exif\x00\x00" + jpg, "image/jpeg"},
		"JPEG in CMYK":           {"\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x02" + jpg, "image/jpeg"},
		"progressive JPEG":       {"\xff\xd8\xff\xc2\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00", "image/jpeg"},
		"lossy WebP":             {riff("VP8 ", "\x30\x01\x00\x9d\x01\x2a"), "image/webp"},
		"lossless WebP":          {riff("VP8L", "\x2f\x00\x00\x00\x10"), "image/webp"},
		"animated WebP":          {riff("VP8X", "\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "image/webp"},
		"HEIC of a phone":        {ftyp("heic", "mif1", "MiHE", "miaf", "MiHB", "heic"), "image/heic"},
		"HEIC with 10 bits":      {ftyp("heix", "mif1", "heix"), "image/heic"},
		"HEIC of a converter":    {ftyp("mif1", "mif1", "heic"), "image/heic"},
		"HEIF":                   {ftyp("mif1", "mif1", "miaf"), "image/heif"},
		"MP4 of a phone":         {ftyp("isom", "iso2", "mp41") + track("vide") + track("soun"), "video/mp4"},
		"MP4 of a browser":       {ftyp("iso5", "iso6", "mp41"), "video/mp4"},
		"MP4 with sound alone":   {ftyp("isom", "iso2") + track("soun"), "audio/mp4"},
		"MOV of a phone":         {ftyp("qt  ", "qt  ") + track("vide"), "video/quicktime"},
		"3GP":                    {ftyp("3gp4", "isom"), "video/3gpp"},
		"voice memo":             {ftyp("M4A ", "isom") + track("soun"), "audio/mp4"},
		"WebM of a browser":      {webmOf("V_VP9", "A_OPUS"), "video/webm"},
		"WebM with sound alone":  {webmOf("A_OPUS"), "audio/webm"},
		"MPEG":                   {"\x00\x00\x01\xba\x44\x00", "video/mpeg"},
		"MP3 with tags":          {"ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x64", "audio/mp3"},
		"MP3 without tags":       {"\xff\xfb\x90\x64\x00\x0f", "audio/mp3"},
		"MP3 at 22 kHz":          {"\xff\xf3\x40\xc4\x00\x00", "audio/mp3"},
		"AAC":                    {"\xff\xf1\x50\x80\x02\x1f\xfc", "audio/aac"},
		"WAV":                    {"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00", "audio/wav"},
		"Ogg with Opus":          {"OggS\x00\x02" + strings.Repeat("\x00", 22) + "OpusHead\x01", "audio/ogg"},
		"FLAC":                   {"fLaC\x00\x00\x00\x22", "audio/flac"},
		"text about MP3":         {"ID3 is a tag. FORM is a word.", "text/plain"},
		"CSV":                    {"a;ü\r\n1;2\r\n", "text/plain"},
		"CSV of Excel":           {"\ufeffName,Größe\r\n", "text/plain"},
		"SVG":                    {`<?xml version="1.0"?><svg onload="alert(1)"/>`, "text/plain"},
		"two letters":            {"BMW is a brand.", "text/plain"},
		"coloured output":        {"\x1b[31mred\x1b[0m\n", "text/plain"},
	} {
		if f, err := attachment.New("x.exe", []byte(c.data)); err != nil || f.Type != c.mime {
			t.Errorf("%s is %q: %v", name, f.Type, err)
		}
	}
}

// TestRefused has files that Gemini does not read. The error says what each of them is.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ data, says string }{
		"empty":                {"", "an empty file"},
		"UTF-16 of Notepad":    {"\xff\xfeh\x00i\x00", "UTF-16"},
		"UTF-16, high first":   {"\xfe\xff\x00h\x00i", "UTF-16"},
		"UTF-16 without mark":  {"h\x00i\x00", "UTF-16"},
		"CSV in Windows-1252":  {"Name;Gr\xf6\xdfe\r\n", "not in UTF-8"},
		"DOCX":                 {"PK\x03\x04\x14\x00\x06\x00", "Office"},
		"ZIP with a PDF":       {"PK\x03\x04\x14\x00\x00\x00%PDF-1.4\n\xff", "ZIP"},
		"DOC":                  {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Office"},
		"RTF":                  {"{\\rtf1\\ansi}", "rich text"},
		"GIF":                  {"GIF89a\x01\x00\x01\x00", "GIF"},
		"BMP":                  {"BM\x46\x00\x00\x00\x00\x00", "BMP"},
		"raw photo":            {"II*\x00\x10\x00\x00\x00CR", "TIFF"},
		"AVIF":                 {ftyp("avif", "mif1", "miaf"), "AVIF"},
		"AVIF named generally": {ftyp("mif1", "mif1", "avif", "miaf"), "AVIF"},
		"burst of a phone":     {ftyp("msf1", "hevc"), "sequence"},
		"another movie":        {ftyp("XAVC", "mp42"), "video"},
		"AVI":                  {"RIFF\x24\x00\x00\x00AVI LIST", "AVI"},
		"Matroska":             {"\x1a\x45\xdf\xa3\x93\x42\x82\x88matroska", "Matroska"},
		"Theora":               {"OggS\x00\x02" + strings.Repeat("\x00", 22) + "\x80theora", "Ogg video"},
		"WMV":                  {"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9", "Windows Media"},
		"FLV":                  {"FLV\x01\x05\x00\x00\x00\x09", "Flash"},
		"AIFF":                 {"FORM\x00\x00\x00\x00AIFFCOMM", "AIFF"},
		"AMR":                  {"#!AMR\n\x3c\x91\x17", "AMR"},
		"MIDI":                 {"MThd\x00\x00\x00\x06\x00\x01", "MIDI"},
		"program":              {"MZ\x90\x00%PDF-1.4", "program"},
		"ELF":                  {"\x7fELF\x02\x01", "program"},
		"PNG sent as text":     {"\x89PNG\n\x1a\n\x00\x00", "another type"},
		"backspaces":           {"a\bb", "another type"},
	} {
		_, err := attachment.New("x.pdf", []byte(c.data))
		if e := fault.As(err); err == nil || e.Field != "data" || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v; want an error, e.Field “data”, e.Message with %q", name, err, c.says)
		}
	}
	for _, name := range []string{"", " ", "\u200b"} {
		if f, err := attachment.New(name, []byte("a")); err == nil && f.Name == name {
			t.Errorf("%q is a file name", name)
		}
	}
	f, err := attachment.New("a\u202efdp.exe"+strings.Repeat("x", 300), []byte("a"))
	if err != nil || !strings.HasPrefix(f.Name, "a⟨U+202E⟩fdp") || len(f.Name) > 110 {
		t.Errorf("%v: the name is %q", err, f.Name)
	}
}

// TestNameOf has names with slashes, which stay, names that are too long, and characters that change how a name looks.
func TestNameOf(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, want := range map[string]string{
		"a.png": "a.png", "AC/DC <b>x</b>.mp3": "AC/DC <b>x</b>.mp3", "📷 a.png": "📷 a.png",
		"in\u202egnp.exe": "in⟨U+202E⟩gnp.exe", long + ".png": long[:90] + " […].png",
		long + "." + long: long[:94] + " […]",
	} {
		if got := attachment.NameOf(name); got != want {
			t.Errorf("%.40q is shown as %q; want %q", name, got, want)
		}
	}
}

// TestTextInUTF16 has text in UTF-16 with and without a byte order mark. The error says how to save it.
func TestTextInUTF16(t *testing.T) {
	for _, data := range []string{"\xff\xfeN\x00a\x00", "N\x00a\x00m\x00e\x00;\x00", "\x00N\x00a\x00m\x00e\x00;"} {
		_, err := attachment.New("a.csv", []byte(data))
		if err == nil || !strings.Contains(err.Error(), "text in UTF-16, which must be saved in UTF-8") {
			t.Errorf("%q: %v; want that it must be saved in UTF-8", data, err)
		}
	}
}
