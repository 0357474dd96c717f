package fakegithub

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (s *Server) getRef(r request) (answer, *failure) {
	if len(r.repo.branches) == 0 {
		return answer{}, empty()
	}
	branch, ok := strings.CutPrefix(r.PathValue("ref"), "heads/")
	if !ok || r.repo.branches[branch] == "" {
		return answer{}, missing()
	}
	return answer{body: s.ref(r.repo, branch)}, nil
}

func (s *Server) createRef(r request) (answer, *failure) {
	var in struct{ Ref, SHA string }
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	branch, ok := strings.CutPrefix(in.Ref, "refs/heads/")
	switch {
	case !r.repo.writable(r.login):
		return answer{}, forbidden()
	case !ok || branch == "":
		return answer{}, unprocessable("Reference name is not valid.")
	case r.repo.branches[branch] != "":
		return answer{}, unprocessable("Reference already exists")
	case r.repo.commits[in.SHA] == nil:
		return answer{}, unprocessable("Object does not exist")
	}
	r.repo.branches[branch] = in.SHA
	s.effects["git/create-ref"]++
	return answer{status: http.StatusCreated, body: s.ref(r.repo, branch)}, nil
}

func (s *Server) updateRef(r request) (answer, *failure) {
	var in struct {
		SHA   string
		Force bool
	}
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	branch, _ := strings.CutPrefix(r.PathValue("ref"), "heads/")
	now := r.repo.branches[branch]
	switch {
	case !r.repo.writable(r.login):
		return answer{}, forbidden()
	case now == "":
		return answer{}, unprocessable("Reference does not exist")
	case r.repo.commits[in.SHA] == nil:
		return answer{}, unprocessable("Object does not exist")
	case !in.Force && !r.repo.descends(in.SHA, now):
		return answer{}, unprocessable("Update is not a fast forward")
	}
	if now != in.SHA {
		r.repo.branches[branch] = in.SHA
		s.effects["git/update-ref"]++
	}
	return answer{body: s.ref(r.repo, branch)}, nil
}

func (s *Server) getCommit(r request) (answer, *failure) {
	c := r.repo.commits[r.PathValue("commit_sha")]
	if c == nil {
		return answer{}, missing()
	}
	return answer{body: s.commit(r.repo, c)}, nil
}

func (s *Server) createCommit(r request) (answer, *failure) {
	var in struct {
		Message, Tree string
		Parents       []string
	}
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	if !r.repo.writable(r.login) {
		return answer{}, forbidden()
	}
	if r.repo.trees[in.Tree] == nil {
		return answer{}, unprocessable("Tree SHA does not exist")
	}
	for _, p := range in.Parents {
		if r.repo.commits[p] == nil {
			return answer{}, unprocessable("Parent SHA does not exist or is not a commit object")
		}
	}
	c := r.repo.addCommit(commit{tree: in.Tree, message: in.Message, author: r.login, parents: in.Parents, at: s.now()})
	s.effects["git/create-commit"]++
	return answer{status: http.StatusCreated, body: s.commit(r.repo, c)}, nil
}

func (s *Server) getTree(r request) (answer, *failure) {
	name := r.PathValue("tree_sha")
	if c := r.repo.at(name); c != nil {
		name = c.tree
	}
	files, ok := r.repo.trees[name]
	if !ok {
		return answer{}, missing()
	}
	return answer{body: s.tree(r.repo, name, files, r.FormValue("recursive") != "")}, nil
}

// createTree accepts only files, by their content or their blob; a null sha deletes one. A new file silently replaces
// a folder in its way, and a new folder a file.
func (s *Server) createTree(r request) (answer, *failure) {
	var in struct {
		BaseTree string `json:"base_tree"`
		Tree     []struct {
			Path, Mode, Type string
			SHA              json.RawMessage
			Content          *string
		}
	}
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	base, known := r.repo.trees[in.BaseTree]
	switch {
	case !r.repo.writable(r.login):
		return answer{}, forbidden()
	case in.BaseTree != "" && !known:
		return answer{}, unprocessable("base_tree is not a valid tree oid")
	}
	files := maps.Clone(base)
	if files == nil {
		files = map[string]file{}
	}
	for _, e := range in.Tree {
		var sha string
		_ = json.Unmarshal(e.SHA, &sha) // null or nothing: no sha
		switch {
		case e.Path == "" || strings.HasPrefix(e.Path, "/") || strings.Contains(e.Path, ".."):
			return answer{}, unprocessable("tree.path contains a malformed path component")
		case e.Content != nil:
			files[e.Path] = file{r.repo.addBlob(*e.Content), e.Mode}
		case string(e.SHA) == "null" && !has(files, e.Path):
			return answer{}, unprocessable("GitRPC::BadObjectState")
		case string(e.SHA) == "null":
			delete(files, e.Path)
		case has(r.repo.blobs, sha):
			files[e.Path] = file{sha, e.Mode}
		default:
			return answer{}, unprocessable("tree.sha " + sha + " is not a valid blob")
		}
	}
	for _, e := range in.Tree {
		maps.DeleteFunc(files, func(path string, _ file) bool {
			return has(files, e.Path) && (strings.HasPrefix(path, e.Path+"/") || strings.HasPrefix(e.Path, path+"/"))
		})
	}
	sha := r.repo.addTree(files)
	s.effects["git/create-tree"]++
	return answer{status: http.StatusCreated, body: s.tree(r.repo, sha, files, true)}, nil
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

func (s *Server) getBlob(r request) (answer, *failure) {
	sha := r.PathValue("file_sha")
	content, ok := r.repo.blobs[sha]
	if !ok {
		return answer{}, missing()
	}
	return answer{body: object{"sha": sha, "node_id": node("B", sha), "size": len(content), "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString([]byte(content)) + "\n",
		"url":     s.api(r.repo) + "/git/blobs/" + sha}}, nil
}

func (s *Server) createBlob(r request) (answer, *failure) {
	var in struct{ Content string }
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	if !r.repo.writable(r.login) {
		return answer{}, forbidden()
	}
	sha := r.repo.addBlob(in.Content)
	s.effects["git/create-blob"]++
	return answer{status: http.StatusCreated,
		body: map[string]any{"sha": sha, "url": s.api(r.repo) + "/git/blobs/" + sha}}, nil
}
