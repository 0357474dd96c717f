package fakegithub

import "time"

// View is a repository in the answer of GET /dev/github.
type View struct {
	Repository string            `json:"repository"`
	Private    bool              `json:"private"`
	Branches   map[string]string `json:"branches"`        // with their commits
	Files      map[string]string `json:"files"`           // of the default branch
	Modes      map[string]string `json:"modes,omitempty"` // the modes other than 100644
	Issues     []IssueView       `json:"issues"`          // pull requests included, by number
}

// IssueView is an issue or a pull request of a View.
type IssueView struct {
	Number    int       `json:"number"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	State     string    `json:"state"`
	Author    string    `json:"author"`
	Labels    []string  `json:"labels,omitempty"`
	Assignees []string  `json:"assignees,omitempty"`
	Head      string    `json:"head,omitempty"` // of a pull request
	Base      string    `json:"base,omitempty"`
	Comments  []string  `json:"comments,omitempty"`
	Reviews   []string  `json:"reviews,omitempty"` // comments on lines of a pull request
	Created   time.Time `json:"created"`
}

// View returns the server's complete content, in order of creation.
func (s *Server) View() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []View{}
	for _, r := range s.repos {
		v := View{Repository: r.full(), Private: r.private, Branches: map[string]string{}, Files: map[string]string{},
			Modes: map[string]string{}, Issues: []IssueView{}}
		for branch, sha := range r.branches {
			v.Branches[branch] = sha
		}
		if c := r.at("HEAD"); c != nil {
			for path, f := range r.trees[c.tree] {
				if v.Files[path] = r.blobs[f.blob]; f.mode != modeFile {
					v.Modes[path] = f.mode
				}
			}
		}
		for _, i := range r.issues {
			v.Issues = append(v.Issues, i.view())
		}
		all = append(all, v)
	}
	return all
}

// CommitView is a commit with all files of its tree.
type CommitView struct {
	SHA, Message string
	Files        map[string]string
}

// Commits returns the commits of a branch, newest first. It returns nil if there is no such repository or branch.
func (s *Server) Commits(owner, name, branch string) (all []CommitView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(owner, name)
	if r == nil {
		return nil
	}
	for _, c := range r.history(r.branches[branch]) {
		v := CommitView{SHA: c.sha, Message: c.message, Files: map[string]string{}}
		for path, f := range r.trees[c.tree] {
			v.Files[path] = r.blobs[f.blob]
		}
		all = append(all, v)
	}
	return all
}

func (i *issue) view() IssueView {
	v := IssueView{Number: i.number, Title: i.title, Body: i.body, State: i.state, Author: i.author, Labels: i.labels,
		Assignees: i.assignees, Created: i.created}
	if i.pull != nil {
		v.Head, v.Base = i.pull.head, i.pull.base
	}
	for _, c := range i.comments {
		v.Comments = append(v.Comments, c.body)
	}
	for _, c := range i.reviews {
		v.Reviews = append(v.Reviews, c.Body)
	}
	return v
}
