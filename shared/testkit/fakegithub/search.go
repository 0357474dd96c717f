package fakegithub

import (
	"slices"
	"strings"
	"time"
)

// SearchLag is the delay until the search finds a new issue. GitHub documents no delay, but its lists have a new
// issue sooner.
const SearchLag = time.Minute

// searchIssues supports the qualifiers repo, author and is, and words of an issue's title and body.
func (s *Server) searchIssues(r request) (answer, *failure) {
	terms := strings.Fields(r.FormValue("q"))
	if len(terms) == 0 {
		return answer{}, invalid("Search", "q", "missing", "")
	}
	indexed := s.now().Add(-SearchLag)
	found := []any{}
	for _, repo := range s.repos {
		if !repo.visible(r.login) {
			continue
		}
		for _, i := range slices.Backward(repo.issues) {
			if !i.created.After(indexed) && i.meets(repo, terms) {
				o := s.issue(repo, i)
				o["score"] = 1
				found = append(found, o)
			}
		}
	}
	cut, link := page(s, r, found)
	return answer{body: object{"total_count": len(found), "incomplete_results": false, "items": cut,
		"search_type": "lexical"}, link: link}, nil
}

func (i *issue) meets(r *repository, terms []string) bool {
	for _, term := range terms {
		name, value, _ := strings.Cut(term, ":")
		met := strings.Contains(strings.ToLower(i.title+"\n"+i.body), strings.ToLower(strings.Trim(term, `"`)))
		switch name {
		case "repo":
			met = strings.EqualFold(r.full(), value)
		case "author":
			met = strings.EqualFold(i.author, value)
		case "is":
			met = value == i.state || value == "issue" && i.pull == nil || value == "pr" && i.pull != nil
		}
		if !met {
			return false
		}
	}
	return true
}
