package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

const (
	pluginFile = "plugin.yaml"
	extension  = ".jay-action"
	maxActions = 200
)

// Load reads the plugins in the folder: its own plugin.yaml, and one in each of its direct subfolders. The actions have
// the order of their files, and the plugins the order of their folders' names.
func Load(dir string) ([]Action, error) {
	l, err := load(dir)
	if err != nil {
		return nil, err
	}
	return l.actions, nil
}

func load(dir string) (*loader, error) {
	root, err := os.OpenRoot(dir) // no file outside the folder is read, not even through a link
	if err != nil {
		return nil, fmt.Errorf("cannot open the actions folder %q; it must be a directory", dir)
	}
	defer root.Close()
	l := &loader{root: root}
	folders, err := l.folders()
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if err := l.plugin(folder); err != nil {
			return nil, err
		}
	}
	return l, nil
}

type loader struct {
	root    *os.Root
	actions []Action
	notes   []string // keys of other programs: a line for each file that has some
}

// folders returns the folders that have a plugin.yaml.
func (l *loader) folders() (found []string, err error) {
	entries, err := fs.ReadDir(l.root.FS(), ".")
	if err != nil {
		return nil, errors.New("cannot read the actions folder")
	}
	candidates := []string{"."}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			candidates = append(candidates, e.Name())
		}
	}
	for _, c := range candidates {
		if _, err := l.root.Lstat(path.Join(c, pluginFile)); err == nil {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil, &Problem{File: pluginFile,
			Text: "this file is in neither the folder of actions nor a folder directly below it"}
	}
	return found, nil
}

func (l *loader) plugin(folder string) error {
	file := path.Join(folder, pluginFile)
	data, err := strictyaml.Read(l.root, file)
	if err != nil {
		return err
	}
	d, err := parse(file, data)
	if err != nil {
		return err
	}
	s, err := d.tolerant(d.Root, []string{"version", "description"}, "name", "actions", "offered")
	if err != nil {
		return err
	}
	if _, err := s.Required("name"); err != nil {
		return err
	}
	name, err := s.Text("name", 100)
	if err != nil {
		return err
	}
	offered, err := s.OneOf("offered", "all", "all", "named")
	if err != nil {
		return err
	}
	list := s.Values["actions"]
	if list == nil || list.ShortTag() == "!!null" { // the plugin has only pages
		list = &yaml.Node{Kind: yaml.SequenceNode}
	}
	if list.Kind != yaml.SequenceNode {
		return d.Wrong(list, "actions: a list of names, or of entries {name, action}, was expected")
	}
	for _, n := range list.Content {
		a, err := l.entry(d, n, folder)
		if err != nil {
			return err
		}
		a.Plugin, a.File, a.Line, a.Named = name, file, n.Line, offered == "named"
		if err := l.add(d, n, a); err != nil {
			return err
		}
	}
	l.notes = append(l.notes, d.note(file)...)
	return nil
}

// entry reads a name, or a name with its file.
func (l *loader) entry(d *document, n *yaml.Node, folder string) (a Action, err error) {
	if n.Kind == yaml.ScalarNode {
		a.Name, err = d.actionName(n)
		return a, err
	}
	s, err := d.tolerant(n, nil, "name", "action")
	if err != nil {
		return a, err
	}
	if a.Name, err = s.name(); err != nil {
		return a, err
	}
	at := s.Values["action"]
	if at == nil {
		return a, nil
	}
	if at.Kind != yaml.ScalarNode || !strings.HasSuffix(at.Value, extension) || strings.Contains(at.Value, `\`) ||
		!filepath.IsLocal(filepath.FromSlash(at.Value)) {
		return a, d.Wrong(at, "action: the path of a %s file within this folder was expected, such as "+
			"./actions/search%s", extension, extension)
	}
	file := l.find(folder, at.Value)
	data, err := strictyaml.Read(l.root, file)
	if err != nil {
		return a, err
	}
	name, m, err := ParseMetadata(file, data)
	if err != nil {
		return a, err
	}
	if name != a.Name {
		return a, d.Wrong(n, "the name %s was expected, as %s says", strictyaml.Quoted(name), file)
	}
	l.notes = append(l.notes, m.notes...)
	a.Metadata = m
	return a, nil
}

// find returns the path of an action's file: the path that the plugin names, or else the one in the exports of the
// package. A package that is not built yet has its files in lib instead of dist.
func (l *loader) find(folder, named string) string {
	file := path.Join(folder, named)
	var built struct {
		Exports map[string]json.RawMessage `json:"exports"`
	}
	data, err := strictyaml.Read(l.root, path.Join(folder, "package.json"))
	if _, missing := l.root.Stat(file); missing == nil || err != nil || json.Unmarshal(data, &built) != nil {
		return file
	}
	var exported string
	if json.Unmarshal(built.Exports["./"+path.Clean(named)], &exported) != nil ||
		!filepath.IsLocal(filepath.FromSlash(exported)) {
		return file
	}
	for _, candidate := range []string{exported, strings.Replace(exported, "dist/", "lib/", 1)} {
		if _, err := l.root.Stat(path.Join(folder, candidate)); err == nil {
			return path.Join(folder, candidate)
		}
	}
	return file
}

// add adds an action. It refuses a duplicate of its own name or of its name for the model.
func (l *loader) add(d *document, n *yaml.Node, a Action) error {
	if len(l.actions) == maxActions {
		return d.Wrong(n, "there are more than %d actions", maxActions)
	}
	for _, b := range l.actions {
		switch {
		case a.Name == b.Name:
			return d.Wrong(n, "the action %s is listed twice; %s:%d has it too", a.Name, b.File, b.Line)
		case GeminiName(a.Name) == GeminiName(b.Name):
			return d.Wrong(n, "the actions %s and %s (%s:%d) would both be called %s by the model; another name "+
				"was expected", a.Name, b.Name, b.File, b.Line, GeminiName(a.Name))
		}
	}
	l.actions = append(l.actions, a)
	return nil
}
