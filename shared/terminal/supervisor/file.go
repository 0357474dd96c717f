package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// FileKind is the kind of object at a path.
type FileKind string

// The values of FileKind.
const (
	FileNone       FileKind = "none"       // nothing, in a folder that exists
	FileNowhere    FileKind = "nowhere"    // nothing, and there is no such folder
	FileRegular    FileKind = "file"       // a file that can be read
	FileUnreadable FileKind = "unreadable" // a file that the host's user may not read
	FileFolder     FileKind = "folder"
	FileOther      FileKind = "other" // a pipe, a socket, a device, or a link whose target does not exist
)

// A File is a host's report about a path.
type File struct {
	Kind   FileKind
	Real   string // the path without links
	Size   int64  // of a regular file, in bytes
	SHA256 string // of a regular file of at most MaxDigest bytes; empty also on a host that cannot compute it
}

// MaxDigest is the size limit of a file whose hash is computed, in bytes.
const MaxDigest = 64 << 20

// Errors of Put. Nothing was written.
var (
	ErrChanged   = errors.New("the file is not the one that was seen")
	ErrUnwritten = errors.New("the file cannot be written")
)

// File returns the host's report about an absolute path. Its errors are the connection's error, ErrMounted or ErrHome.
func (c *Client) File(ctx context.Context, path string) (File, error) {
	var out bytes.Buffer
	err := c.onFile(ctx, "facts", strings.NewReader(octal(path)+"\n"), &out, "most="+strconv.Itoa(MaxDigest))
	if err != nil {
		return File{}, err
	}
	f, err := fileOf(out.String())
	if err != nil {
		return File{}, fmt.Errorf("supervisor: the host answered %.80q: %w", out.String(), err)
	}
	return f, nil
}

var digest = lazyregexp.New(`^([0-9a-f]{64})?$`)

// fileOf parses the answer about a file.
func fileOf(answer string) (f File, err error) {
	var errs []error
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "kind":
			f.Kind = FileKind(value)
		case "size":
			f.Size, err = strconv.ParseInt(value, 10, 64)
		case "sum":
			f.SHA256 = value
		case "real":
			f.Real, err = url.PathUnescape(value)
		}
		errs = append(errs, err)
	}
	switch f.Kind {
	case FileNone, FileRegular, FileUnreadable, FileFolder, FileOther, FileNowhere:
	default:
		errs = append(errs, errors.New("unknown kind"))
	}
	if !digest.MatchString(f.SHA256) {
		errs = append(errs, errors.New("invalid hash"))
	}
	return f, errors.Join(errs...)
}

// Fetch writes the first size bytes of a file to out. The file is opened once, and must be in one of the folders after
// links are resolved. An element of within can also be the file itself. Fetch returns one of this package's errors if
// the file cannot be opened, or the connection's error.
func (c *Client) Fetch(ctx context.Context, path string, within []string, size int64, out io.Writer) error {
	s := Start{Opens: Opens{Within: within, Paths: []Path{{Name: path, Shown: path}}, Files: true}}
	if !c.Opens(&s.Opens) {
		return ErrMissing
	}
	mark := newMark()
	return c.fileVerb(ctx, mark, "fetch", strings.NewReader(s.request(mark)), out, "opens=1", "files=1", "grammar=sh",
		fmt.Sprintf("within=%d", len(within)), fmt.Sprintf("size=%d", size), "open_after="+hundredths(c.Times.Open))
}

// maxProgram is the size limit of the host's answer about a program, in bytes.
const maxProgram = 64 << 10

// Program finds the file that the name runs in the directory cwd, in a clean environment. It returns three lines: cwd
// without links, the path of the file, and the file's SHA-256. It returns "" if the host does not report all of them.
// The error is ErrCwd or that of the connection.
func (c *Client) Program(ctx context.Context, cwd, name string) (string, error) {
	mark := newMark()
	asked := Start{Cwd: cwd, Command: name}
	x := Exec{Line: c.line("program", "mark="+mark), Stdin: strings.NewReader(asked.request(mark))}
	if c.Facts.Home == "" {
		x.Line, x.Stdin = bare("program", "mark="+mark), io.MultiReader(strings.NewReader(script), x.Stdin)
	}
	var out bytes.Buffer
	end, err := c.exec(ctx, x, mark, &out, nil)
	if err != nil {
		return "", err
	}
	if end != "over" {
		return "", refusal(end)
	}
	said := strings.TrimSuffix(out.String(), "\n")
	lines := strings.Split(said, "\n")
	if len(lines) < 3 && (len(lines) != 2 || lines[1] != "builtin") || len(said) > maxProgram {
		return "", nil // a path without a hash proves nothing
	}
	return said, nil
}

// A Put is a file to write.
type Put struct {
	ID      string // the action's ID, which is in the name of the temporary file
	Path    string // absolute, without links
	Content []byte
	SHA256  string // of Content
	Was     string // SHA-256 of the file to replace; empty: no file exists
}

// Put writes a file as a whole, or not at all. It returns ErrChanged if the present file does not have the hash Was.
// After an error that is not this package's, the file may have been written; use File to find out.
func (c *Client) Put(ctx context.Context, p Put) error {
	if err := checkID(p.ID); err != nil {
		return err
	}
	args := []string{"id=" + p.ID, "sum=" + p.SHA256}
	if p.Was != "" {
		args = append(args, "was="+p.Was)
	}
	in := io.MultiReader(strings.NewReader(octal(p.Path)+"\n"), bytes.NewReader(p.Content))
	return c.onFile(ctx, "put", in, io.Discard, args...)
}

func (c *Client) onFile(ctx context.Context, verb string, in io.Reader, out io.Writer, args ...string) error {
	return c.fileVerb(ctx, newMark(), verb, in, out, args...)
}

// fileVerb runs a verb that concerns one file.
func (c *Client) fileVerb(ctx context.Context, mark, verb string, in io.Reader, out io.Writer, args ...string) error {
	if c.Facts.Home == "" {
		return ErrHome
	}
	end, err := c.exec(ctx, Exec{Line: c.line(verb, append(args, "mark="+mark)...), Stdin: in}, mark, out, nil)
	switch {
	case err != nil:
		return err
	case end == "over":
		return nil
	}
	if why := refusal(end); why != nil {
		return why
	}
	return fmt.Errorf("supervisor: the host answered %.40q", end)
}
