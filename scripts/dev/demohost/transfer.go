package demohost

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// maxPut limits the bytes of an uploaded file that are read. No file of a request is that large.
const maxPut = 4 << 20

// digest returns the SHA-256 of a file in hexadecimal, or "".
func (d *disk) digest(abs string) string {
	content, err := d.readFile(abs)
	if err != nil {
		return ""
	}
	return sumOf(content)
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// look describes the file at a path.
func (d *disk) look(abs string, most int64) supervisor.File {
	real, err := d.real(abs)
	if err != nil {
		if _, err := d.lstat(abs); err == nil {
			return supervisor.File{Kind: supervisor.FileOther, Real: abs} // a link to nothing
		}
		folder, err := d.real(path.Dir(abs))
		if info, missing := d.stat(folder); err != nil || missing != nil || !info.IsDir() {
			return supervisor.File{Kind: supervisor.FileNowhere}
		}
		return supervisor.File{Kind: supervisor.FileNone, Real: path.Join(folder, path.Base(abs))}
	}
	info, err := d.stat(real)
	switch {
	case err != nil || !info.Mode().IsRegular() && !info.IsDir():
		return supervisor.File{Kind: supervisor.FileOther, Real: real}
	case info.IsDir():
		return supervisor.File{Kind: supervisor.FileFolder, Real: real}
	}
	f := supervisor.File{Kind: supervisor.FileRegular, Real: real, Size: info.Size()}
	if f.Size <= most {
		f.SHA256 = d.digest(real)
	}
	return f
}

// facts prints a description of the file at a path.
func (s *session) facts(r request) {
	line, err := io.ReadAll(io.LimitReader(s.channel, maxCommand))
	if err != nil {
		s.refuse(r, "cut")
		return
	}
	f := s.host.machine.disk.look(plainText(strings.TrimSuffix(string(line), "\n")), int64(r.number("most", 0)))
	s.say(r, fmt.Sprintf("kind=%s\nsize=%d\nsum=%s\nreal=%s\n", f.Kind, f.Size, f.SHA256, encoded(f.Real)), "over")
}

// fetch prints the first bytes of a file.
func (s *session) fetch(r request) {
	_, text, whole := s.received(r)
	folders, paths, _ := opens(r, text)
	if !whole || len(paths) != 1 {
		s.refuse(r, "cut")
		return
	}
	d := s.host.machine.disk
	if _, why := s.host.open(folders, true, paths, ""); why != "" {
		s.refuse(r, why)
		return
	}
	content, err := d.readFile(paths[0].Name)
	if err != nil {
		s.refuse(r, "missing")
		return
	}
	mark := r.values["mark"]
	_, _ = fmt.Fprintf(s.channel, "\n%s:begin\n%s\n%s:over\n", mark, // the client may be gone
		content[:min(len(content), r.number("size", 0))], mark)
}

// put writes a file, unless it has changed since its user saw it.
func (s *session) put(r request) {
	all, err := io.ReadAll(io.LimitReader(s.channel, maxPut))
	line, content, lined := strings.Cut(string(all), "\n")
	if err != nil || !lined || sumOf([]byte(content)) != r.values["sum"] {
		s.refuse(r, "cut")
		return
	}
	h, abs := s.host, plainText(line)
	h.claims.Lock()
	defer h.claims.Unlock()
	d := h.machine.disk
	if now := d.look(abs, supervisor.MaxDigest); now.Real != abs || now.SHA256 != r.values["was"] ||
		now.Kind != supervisor.FileRegular && now.Kind != supervisor.FileNone {
		s.refuse(r, "changed")
		return
	}
	name := path.Join(path.Dir(abs), ".countersign-"+r.values["id"])
	if d.written.Add(int64(len(content))) > d.most || d.write(name, []byte(content), h.now()) != nil ||
		d.root.Rename(inside(name), inside(abs)) != nil {
		s.refuse(r, "unwritten")
		return
	}
	s.say(r, "", "over")
}
