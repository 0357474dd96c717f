package shop

import (
	"context"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Found is a product in the results of the actions.
type Found struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Category    string  `json:"category"`
	Price       string  `json:"price"`
	Stars       float64 `json:"stars,omitempty"` // the mean of the ratings; absent without ratings
}

// SearchIn is the input of searchProducts.
type SearchIn struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"` // 0 means 10
}

// SearchOut is the output of searchProducts.
type SearchOut struct {
	Products []Found `json:"products"`
	Total    int     `json:"total"`
}

// GetIn is the input of getProduct. The output is a Found.
type GetIn struct {
	ID string `json:"id"`
}

// RatingIn is the input of submitRating.
type RatingIn struct {
	ProductID string `json:"productId"`
	Stars     int    `json:"stars"`
	Comment   string `json:"comment,omitempty"`
}

// RatingOut is the output of submitRating.
type RatingOut struct {
	ProductID string  `json:"productId"`
	Stars     float64 `json:"stars"` // the mean, including this rating
	Ratings   int     `json:"ratings"`
}

// A Shop is the example shop. It keeps the ratings in memory.
type Shop struct {
	Agent string // the agent that answers on the page; empty for the default one

	mu      sync.Mutex
	ratings map[string]map[string]int // the stars, by product and user
}

// New returns a shop without ratings.
func New() *Shop { return &Shop{ratings: map[string]map[string]int{}} }

// maxRatings limits the ratings of one product.
const maxRatings = 10_000

// SearchProducts finds products by the words of a query.
func (s *Shop) SearchProducts(_ context.Context, _ tool.Call, in SearchIn) (SearchOut, error) {
	if in.Limit == 0 {
		in.Limit = 10
	}
	if in.Limit < 1 || in.Limit > 50 {
		return SearchOut{}, fault.Invalid("limit", "the limit must be 1 to 50 products")
	}
	found := search(in.Query)
	out := SearchOut{Products: []Found{}, Total: len(found)}
	for _, p := range found[:min(len(found), in.Limit)] {
		out.Products = append(out.Products, s.describe(p))
	}
	return out, nil
}

// GetProduct returns one product.
func (s *Shop) GetProduct(_ context.Context, _ tool.Call, in GetIn) (Found, error) {
	p, ok := find(in.ID)
	if !ok {
		return Found{}, fault.Invalid("id", "the shop has no such product")
	}
	return s.describe(p), nil
}

// SubmitRating stores the user's rating of a product. A later rating replaces an earlier one, so a rating that is sent
// twice counts once.
func (s *Shop) SubmitRating(_ context.Context, c tool.Call, in RatingIn) (RatingOut, error) {
	if _, ok := find(in.ProductID); !ok {
		return RatingOut{}, fault.Invalid("productId", "the shop has no such product")
	}
	if in.Stars < 1 || in.Stars > 5 {
		return RatingOut{}, fault.Invalid("stars", "a rating has 1 to 5 stars")
	}
	if !s.rate(in.ProductID, c.UID, in.Stars) {
		return RatingOut{}, fault.Invalid("productId", "this product has the maximum number of ratings")
	}
	stars, ratings := s.Stars(in.ProductID)
	return RatingOut{ProductID: in.ProductID, Stars: stars, Ratings: ratings}, nil
}

func (s *Shop) rate(id, uid string, stars int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.ratings[id]
	if given == nil {
		given = map[string]int{}
		s.ratings[id] = given
	}
	if _, again := given[uid]; !again && len(given) >= maxRatings {
		return false
	}
	given[uid] = stars
	return true
}

// Stars returns the mean and the number of a product's ratings.
func (s *Shop) Stars(id string) (mean float64, ratings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.ratings[id]
	if len(given) == 0 {
		return 0, 0
	}
	sum := 0
	for _, n := range given {
		sum += n
	}
	return float64(sum) / float64(len(given)), len(given)
}

func (s *Shop) describe(p Product) Found {
	stars, _ := s.Stars(p.ID)
	return Found{p.ID, p.Name, p.Description, p.Category, p.Price(), stars}
}
