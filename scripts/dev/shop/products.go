package shop

import (
	"fmt"
	"strings"
)

// A Product is an item that the shop sells.
type Product struct {
	ID          string
	Name        string
	Description string
	Category    string
	Cents       int
}

// Price returns the price as text, such as €12.00.
func (p Product) Price() string { return fmt.Sprintf("€%d.%02d", p.Cents/100, p.Cents%100) }

// Words returns the text that a search examines, in lower case.
func (p Product) Words() string {
	return strings.ToLower(p.Name + " " + p.Category + " " + p.Description)
}

// products lists the products in the order of the page.
var products = []Product{
	{"mug-blue", "Blue Mug", "Stoneware, 300 ml, with a matt glaze the colour of ink.", "mugs", 1200},
	{"mug-red", "Red Mug", "Stoneware, 300 ml, glazed in brick red.", "mugs", 1200},
	{"mug-green", "Green Mug", "Stoneware, 300 ml, glazed in moss green.", "mugs", 1250},
	{"mug-white-large", "Large White Mug", "Porcelain, 450 ml, for long mornings.", "mugs", 1490},
	{"mug-travel", "Steel Travel Mug", "Double wall, 400 ml, with a lid that closes.", "mugs", 2400},
	{"teapot-blue", "Blue Teapot", "Holds one litre; its sieve comes out for washing.", "pots", 3450},
	{"bowl-green", "Green Bowl", "Wide and shallow, for soup or fruit.", "tableware", 1650},
	{"plate-white", "White Plate", "Porcelain, 26 cm, fit for the dishwasher.", "tableware", 980},
	{"candle-yellow", "Yellow Candle", "Beeswax, burns for forty hours.", "home", 890},
	{"notebook-red", "Red Notebook", "160 dotted pages that lie flat.", "paper", 1100},
	{"tote-canvas", "Canvas Tote Bag", "Carries a dozen cups, if they are wrapped.", "bags", 1500},
	{"tea-assam", "Assam Tea", "125 g of loose black tea in a tin.", "tea", 760},
}

// find returns the product with the id.
func find(id string) (Product, bool) {
	for _, p := range products {
		if p.ID == id {
			return p, true
		}
	}
	return Product{}, false
}

// search returns the products whose words contain every word of the query. Products with all of the words in their
// names come first.
func search(query string) []Product {
	words := strings.Fields(strings.ToLower(query))
	var named, others []Product
	for _, p := range products {
		switch {
		case all(words, strings.ToLower(p.Name)):
			named = append(named, p)
		case all(words, p.Words()):
			others = append(others, p)
		}
	}
	return append(named, others...)
}

// all reports whether the text contains each word. A plural also matches its singular.
func all(words []string, text string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) && !strings.Contains(text, strings.TrimSuffix(w, "s")) {
			return false
		}
	}
	return true
}
