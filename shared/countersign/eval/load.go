package eval

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// maxADKFile is the maximum size of a JSON file of ADK, in bytes.
const maxADKFile = 8 << 20

// Load reads the cases of a file, or of all files in a folder and the folders in it. Mistakes in files are in
// [Set.Problems]; the error means that nothing could be read.
func Load(name string) (*Set, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened; a folder with files of cases was expected", name)
	}
	dir, only := name, "."
	if !info.IsDir() {
		dir, only = filepath.Split(name)
		dir = filepath.Clean(dir)
	}
	root, err := os.OpenRoot(dir) // prevents reads outside the folder, even through links
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened; a folder with files of cases was expected", name)
	}
	defer root.Close()
	s := &Set{}
	files := 0
	err = fs.WalkDir(root.FS(), only, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			s.Problems = append(s.Problems, &strictyaml.Problem{File: name, Text: "cannot be read"})
			return nil
		case strings.HasPrefix(e.Name(), ".") && name != ".":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || reader(name) == nil:
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s: more than %d files of cases", dir, maxFiles)
		}
		if !regular(root, name) { // opening a pipe would wait for a writer
			s.Problems = append(s.Problems, &strictyaml.Problem{File: name, Text: "not a regular file in the folder"})
			return nil
		}
		s.read(root, name)
		return nil
	})
	s.Problems = slices.CompactFunc(s.Problems, func(a, b error) bool { return a.Error() == b.Error() })
	switch {
	case err != nil:
		return nil, err
	case files == 0:
		return nil, fmt.Errorf("%s: no file of cases; expected NAME.eval.yaml, NAME.evalset.json or NAME.test.json",
			name)
	case len(s.Cases) > maxCases:
		return nil, fmt.Errorf("%s: %d cases; the limit is %d", name, len(s.Cases), maxCases)
	}
	return s, nil
}

// regular reports whether the name is a regular file in the folder.
func regular(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// A form reads the cases of one form of file. Problems are recorded at the nodes.
type form func(s *Set, root *os.Root, n *node) []*Case

// reader returns the form of the file's cases, or nil if the file has none.
func reader(name string) form {
	switch {
	case strings.HasSuffix(name, ".eval.yaml"), strings.HasSuffix(name, ".eval.yml"),
		strings.HasSuffix(name, ".eval.json"):
		return ownCases
	case strings.HasSuffix(name, ".evalset.json"), strings.HasSuffix(name, ".test.json"):
		return adkCases
	}
	return nil
}

// read adds the file's cases. If the file has a mistake, only its problems are added.
func (s *Set) read(root *os.Root, name string) {
	n, err := parse(root, name)
	if err != nil {
		s.Problems = append(s.Problems, err)
		return
	}
	cases := reader(name)(s, root, n)
	names := map[string]int{}
	for _, c := range cases {
		if names[c.Name]++; names[c.Name] > 1 {
			c.Name = fmt.Sprintf("%s (%d)", c.Name, names[c.Name])
		}
	}
	if len(n.file.wrong) > 0 {
		slices.SortStableFunc(n.file.wrong, byLine)
		s.Problems = append(s.Problems, n.file.wrong...)
		return
	}
	s.Cases = append(s.Cases, cases...)
}

func byLine(a, b error) int {
	pa, pb := (*strictyaml.Problem)(nil), (*strictyaml.Problem)(nil)
	if errors.As(a, &pa) && errors.As(b, &pb) {
		return pa.Line - pb.Line
	}
	return 0
}

// parse reads a file within its limits.
func parse(root *os.Root, name string) (*node, error) {
	if !strings.HasSuffix(name, ".json") {
		data, err := strictyaml.Read(root, name)
		if err != nil {
			return nil, err
		}
		return parseYAML(name, data)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, &strictyaml.Problem{File: name, Text: "cannot be opened"}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxADKFile+1))
	switch {
	case err != nil:
		return nil, &strictyaml.Problem{File: name, Text: "cannot be read"}
	case len(data) > maxADKFile:
		return nil, &strictyaml.Problem{File: name, Text: fmt.Sprintf("larger than %d bytes", maxADKFile)}
	}
	return parseJSON(name, data)
}

// AddResults reads a file with results of tools, in the form of the key tools of a NAME.eval.yaml, and adds them to the
// cases that have no result for the tool.
func (s *Set) AddResults(name string) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("%s: cannot be opened", name)
	}
	defer root.Close()
	n, err := parse(root, filepath.Base(name))
	if err != nil {
		return err
	}
	all := map[string][]recorded{}
	for tool, v := range fieldsOf(n) {
		all[tool] = resultsOf(v)
	}
	if len(n.file.wrong) > 0 {
		return errors.Join(n.file.wrong...)
	}
	for _, c := range s.Cases {
		for tool, results := range all {
			if len(c.results[tool]) == 0 {
				c.results[tool] = results
			}
		}
	}
	return nil
}
