package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

const (
	maxDepth   = 4      // depth of a skill's folder below its source
	maxEntries = 10_000 // entries of the folders above skills, in one source
)

// A Source is a place from which skills are loaded: each folder in or below it that has a SKILL.md.
type Source struct {
	dir  string
	fsys fs.FS // nil: dir is a folder of this machine
}

// Dir returns a source for a folder of this machine. The folder contains skills, or is itself one. Links that lead out
// of the folder or out of a skill are not followed.
func Dir(path string) Source { return Source{dir: path} }

// FS returns the source of a file system, such as an embed.FS. Links in it are not followed.
func FS(fsys fs.FS) Source { return Source{fsys: fsys} }

// A folder contains the files of one skill.
type folder struct {
	Source
	path string // path within the source
}

// open returns the files of a folder within the source, and a function that closes them. No path leads out of the
// folder.
func (f folder) open() (fs.FS, func() error, error) {
	if f.fsys != nil {
		sub, err := fs.Sub(unlinked{f.fsys}, f.path)
		return sub, func() error { return nil }, err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, nil, err
	}
	if f.path == "." {
		return root.FS(), root.Close, nil
	}
	defer root.Close()
	sub, err := root.OpenRoot(filepath.FromSlash(f.path))
	if err != nil {
		return nil, nil, err
	}
	return sub.FS(), sub.Close, nil
}

// unlinked is a file system whose links are not followed. os.DirFS, as an fs.FS for a folder of this machine, would
// follow them anywhere.
type unlinked struct{ fs.FS }

func (u unlinked) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	for at := name; at != "."; at = path.Dir(at) {
		entries, err := fs.ReadDir(u.FS, path.Dir(at))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(at) })
		switch {
		case i < 0:
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case entries[i].Type()&fs.ModeSymlink != 0:
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	return u.FS.Open(name)
}

// named returns a path within the source in the form that error messages use.
func (s Source) named(within string) string {
	if s.fsys != nil {
		return within
	}
	return filepath.Join(s.dir, filepath.FromSlash(within))
}

func (s Source) fault(within, format string, args ...any) error {
	return &strictyaml.Problem{File: s.named(within), Text: fmt.Sprintf(format, args...)}
}

// load returns the source's usable skills, the warnings about the others, and the faults of the source as a whole. A
// source without a usable skill is a fault.
func (s Source) load() (all []*Skill, warnings, wrong []error) {
	fsys, shut, err := folder{s, "."}.open()
	if err != nil {
		return nil, nil, []error{s.fault(".", "the folder of skills cannot be opened; a directory was expected")}
	}
	defer shut()
	w := &walk{Source: s, fsys: fsys}
	w.look(".", 0)
	var refused []error
	for _, at := range w.found {
		skill, wrong := s.skill(at)
		if len(wrong) == 0 {
			all = append(all, skill)
		}
		refused = append(refused, wrong...)
	}
	if len(all) == 0 {
		wrong = slices.Concat(w.wrong, w.warnings, refused)
		if len(wrong) == 0 {
			wrong = append(wrong, s.fault(".", "there is no skill; a folder with %s was expected", File))
		}
		return nil, nil, wrong
	}
	for _, err := range refused {
		if p, ok := errors.AsType[*strictyaml.Problem](err); ok {
			p.Text += "; the skill is skipped"
		}
	}
	return all, slices.Concat(w.warnings, refused), w.wrong
}

// A walk searches for folders with a SKILL.md.
type walk struct {
	Source
	fsys    fs.FS
	entries int
	found   []string

	warnings, wrong []error
}

func (w *walk) warn(within, format string, args ...any) {
	w.warnings = append(w.warnings, w.fault(within, format, args...))
}

// look adds the folder as a skill, or else the skills below it. The subfolders of a skill are part of it.
func (w *walk) look(at string, depth int) {
	entries, err := fs.ReadDir(w.fsys, at)
	if err != nil {
		w.warn(at, "the folder cannot be read")
		return
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == File }) {
		w.found = append(w.found, at)
		return
	}
	for _, e := range entries {
		name := path.Join(at, e.Name())
		w.entries++
		switch {
		case w.entries > maxEntries:
			if w.entries == maxEntries+1 {
				w.wrong = append(w.wrong, w.fault(".", "there are more than %d files and folders beside skills; a "+
					"folder of skills was expected", maxEntries))
			}
			return
		case strings.HasPrefix(e.Name(), "."):
		case strings.EqualFold(e.Name(), File):
			w.warn(name, "the name %s was expected, in capitals", File)
		case e.Type()&fs.ModeSymlink != 0:
			w.link(name)
		case e.IsDir() && depth < maxDepth:
			w.look(name, depth+1)
		}
	}
}

// link adds a warning about a link beside skills. The link may be meant as a skill, so it is not ignored silently.
func (w *walk) link(name string) {
	info, err := fs.Stat(w.fsys, name)
	switch {
	case err != nil:
		w.warn(name, "this link leads nowhere, or out of the folder of skills; name the folder that it "+
			"leads to instead")
	case info.IsDir():
		w.warn(name, "links to folders are not followed; name the folder that it leads to instead")
	}
}

// skill reads the skill in a folder. A skill with faults cannot be used.
func (s Source) skill(at string) (*Skill, []error) {
	f := folder{s, at}
	file := s.named(path.Join(at, File))
	fsys, shut, err := f.open()
	if err != nil {
		return nil, []error{s.fault(at, "the folder cannot be opened")}
	}
	defer shut()
	data, err := read(fsys, File, maxFront+MaxText)
	if err != nil {
		return nil, []error{&strictyaml.Problem{File: file, Text: err.Error()}}
	}
	skill, wrong := parse(file, data, s.folderName(at))
	if skill == nil {
		return nil, wrong
	}
	skill.folder = f
	files, unread, more := s.files(fsys, at)
	skill.Files = files
	skill.warnings = append(skill.warnings, unread...)
	if n := len(skill.activation()); n > MaxText {
		more = append(more, skill.fault(0,
			"the text and the list of the skill's files have %d bytes; the limit is %d",
			n, MaxText))
	}
	return skill, append(wrong, more...)
}

// folderName returns the name of a skill's folder, or "" for the top of a file system.
func (s Source) folderName(at string) string {
	if at != "." {
		return path.Base(at)
	}
	if s.fsys != nil {
		return ""
	}
	abs, err := filepath.Abs(s.dir)
	if err != nil {
		return ""
	}
	return filepath.Base(abs)
}

// files returns the paths of the files other than SKILL.md, and a warning for each that cannot be read. Hidden files
// are not part of a skill.
func (s Source) files(fsys fs.FS, at string) (all []string, unread, wrong []error) {
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(e.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && e.IsDir():
			return fs.SkipDir
		case hidden || e.IsDir() || name == File:
			return nil
		case len(all) == MaxFiles:
			return errTooMany
		}
		info, err := fs.Stat(fsys, name) // of the link's target
		switch {
		case err != nil:
			unread = append(unread, s.fault(path.Join(at, name),
				"the file cannot be opened; it must be within its skill's folder"))
		case !info.Mode().IsRegular():
			unread = append(unread, s.fault(path.Join(at, name), "not a regular file"))
		default:
			all = append(all, name)
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		wrong = append(wrong, s.fault(at, "there are more than %d files in the skill's folder", MaxFiles))
	} else if err != nil {
		wrong = append(wrong, s.fault(at, "the skill's folder cannot be read"))
	}
	slices.Sort(all)
	return all, unread, wrong
}

var errTooMany = errors.New("too many files")

// read returns a plain file of at most the given number of bytes. Its errors are sentences.
func read(fsys fs.FS, name string, most int) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, errors.New("the file cannot be opened; it must be within its skill's folder")
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > int64(most):
		return nil, fmt.Errorf("the file is larger than %d bytes", most)
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, errors.New("the file cannot be read")
	}
	return data, nil
}
