package fakegithub

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

func (s *Server) getUser(r request) (answer, *failure) { return answer{body: s.self(r.login)}, nil }

func (s *Server) listRepositories(r request) (answer, *failure) {
	var all []*repository
	for _, repo := range s.repos {
		if repo.writable(r.login) {
			all = append(all, repo)
		}
	}
	slices.SortFunc(all, func(a, b *repository) int { return strings.Compare(a.full(), b.full()) })
	return listed(s, r, all, func(repo *repository) any { return s.repository(repo) }), nil
}

func (s *Server) getRepository(r request) (answer, *failure) {
	return answer{body: s.repository(r.repo)}, nil
}

var repositoryName = lazyregexp.New(`^[A-Za-z0-9._-]{1,100}$`)

func (s *Server) createRepository(r request) (answer, *failure) {
	var in struct {
		Name, Description string
		Private           bool
		AutoInit          bool `json:"auto_init"`
	}
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	switch {
	case !repositoryName.MatchString(in.Name):
		return answer{}, invalid("Repository", "name", "invalid", "")
	case s.find(r.login, in.Name) != nil:
		return answer{}, invalid("Repository", "name", "custom", "name already exists on this account")
	}
	s.effects["repos/create-for-authenticated-user"]++
	made := s.newRepository(r.login, in.Name, in.Description, in.Private)
	if in.AutoInit {
		tree := made.addTree(map[string]file{"README.md": {made.addBlob("# " + in.Name), modeFile}})
		made.branches[made.defaultBranch] = made.addCommit(commit{tree: tree, message: "Initial commit",
			author: r.login, at: s.now()}).sha
	}
	return answer{status: http.StatusCreated, body: s.repository(made)}, nil
}

// getContent answers with a file, or with the entries of a folder.
func (s *Server) getContent(r request) (answer, *failure) {
	c := r.repo.at(r.FormValue("ref"))
	if c == nil {
		return answer{}, missing()
	}
	path, files := r.PathValue("path"), r.repo.trees[c.tree]
	if f, ok := files[path]; ok {
		body := s.entry(r.repo, path, f.blob)
		body["type"], body["encoding"] = "file", "base64"
		body["content"] = base64.StdEncoding.EncodeToString([]byte(r.repo.blobs[f.blob])) + "\n"
		if len(r.repo.blobs[f.blob]) > 1<<20 { // only its blob has the content
			body["encoding"], body["content"] = "none", ""
		}
		return answer{body: body}, nil
	}
	list := []any{}
	for _, file := range sorted(files) {
		if name, ok := strings.CutPrefix(file, path+"/"); ok && !strings.Contains(name, "/") {
			entry := s.entry(r.repo, file, files[file].blob)
			entry["type"] = "file"
			list = append(list, entry)
		}
	}
	if len(list) == 0 {
		return answer{}, missing()
	}
	return answer{body: list}, nil
}

func (s *Server) listCommits(r request) (answer, *failure) {
	if len(r.repo.branches) == 0 {
		return answer{}, empty()
	}
	c := r.repo.at(r.FormValue("sha"))
	if c == nil {
		return answer{}, missing()
	}
	return listed(s, r, r.repo.history(c.sha), func(c *commit) any { return s.listedCommit(r.repo, c) }), nil
}
