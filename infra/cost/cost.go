// Package cost calculates the cost of runs at three sizes: the usage of each kind of run (counts.json, which a test of
// shared/app counts and checks) times list prices. It also reports the quota that is exceeded first. README.md is its
// output, and a test compares the two.
package cost

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

//go:embed counts.json
var countsJSON []byte

const (
	mail  = "an e-mail that waits for its user"
	words = "words"
)

// counts is the usage of one run of a kind.
type counts struct {
	Kind        string       `json:"kind"`
	Invocations []invocation `json:"invocations"`
	Reads       int          `json:"reads"`
	Writes      int          `json:"writes"`
	Messages    int          `json:"messages"`
	LogLines    int          `json:"logLines"`
}

type invocation struct {
	Function   string `json:"function"`
	ModelCalls int    `json:"modelCalls"`
	Effects    int    `json:"effects"`
}

func (c counts) modelCalls() (n int) {
	for _, i := range c.Invocations {
		n += i.ModelCalls
	}
	return n
}

// seconds returns the duration of an invocation.
func (i invocation) seconds() float64 {
	return ownSeconds + modelSeconds*float64(i.ModelCalls) + effectSeconds*float64(i.Effects)
}

// share is an item of the cost of runs.
type share struct {
	what   string
	dollar float64 // a month
}

// mixed is a kind of runs, with its share of all runs.
type mixed struct {
	counts
	share float64
}

// only returns a mix of one kind.
func only(c counts) []mixed { return []mixed{{c, 1}} }

// month returns the monthly cost of the given number of runs a day, by item.
func month(mix []mixed, functions map[string]infra.Function, runs float64) []share {
	var reads, writes, messages, lines, calls, public, keyUses, asked float64
	busy := map[string]float64{} // seconds of requests a day, by function
	for _, c := range mix {
		n := c.share * runs * days
		reads, writes = reads+n*float64(c.Reads), writes+n*float64(c.Writes)
		messages, lines = messages+n*float64(c.Messages), lines+n*float64(c.LogLines)
		asked += n * float64(c.modelCalls())
		for _, i := range c.Invocations {
			busy[i.Function] += c.share * runs * i.seconds()
			calls += n
			if functions[i.Function].Public() {
				public += n
			}
			keyUses += n * float64(i.Effects) // each decrypts a user's token
			if i.Function == "approvals-resolve" {
				keyUses += n // it signs the decision
			}
		}
	}
	cpu, memory := 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(busy)) {
		f := functions[name]
		on := days * instanceSeconds(busy[name]/86_400, filled*float64(f.Concurrency))
		cpu += on * number(f.CPU)
		memory += on * gib(f.Memory)
	}
	accesses := reads + writes // at most: a query or a commit of several documents is one access
	return []share{
		{"documents written", writes * writePrice.dollar},
		{"documents read", reads * readPrice.dollar},
		{"functions", cpu*cpuPrice.dollar + memory*memoryPrice.dollar + calls*callPrice.dollar},
		{"messages", messages * messagePrice.dollar},
		{"log", lines * logLineBytes * keptLog},
		{"log of accesses to data", accesses * accessBytes * keptLog},
		{"load balancer and its log", public * (requestBytes*edgePrice.dollar + edgeLineBytes*logPrice.dollar)},
		{"Cloud Armor", public * armorPrice.dollar},
		{"Cloud KMS", keyUses * kmsPrice.dollar},
		{"the model", asked * (tokensIn*tokenPrice.dollar + tokensOut*answerPrice.dollar)},
	}
}

// sum returns the sum of the items.
func sum(items []share) (total float64) {
	for _, s := range items {
		total += s.dollar
	}
	return total
}

// instanceSeconds returns the paid seconds of instances in a day, for an average number of concurrent requests. With
// few requests, one instance is paid for while it has a request: the share of time in which a Poisson-distributed
// number is not zero. With many requests, as many instances are paid for as the requests fill. place
// is the number of concurrent requests that one instance serves.
func instanceSeconds(atOnce, place float64) float64 {
	return 86_400 * max(1-math.Exp(-atOnce), atOnce/place)
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64) // infra.Functions has checked it
	return n
}

func gib(memory string) float64 {
	if n, ok := strings.CutSuffix(memory, "Mi"); ok {
		return number(n) / 1024
	}
	return number(strings.TrimSuffix(memory, "Gi"))
}

// bound is the number of runs a day of a kind at which a quota is exceeded in the busiest minute.
type bound struct {
	quota
	runs float64
}

// bounds returns the bounds of a mix, the lowest first.
func bounds(mix []mixed, functions map[string]infra.Function) (all []bound) {
	for _, q := range quotas {
		takes := 0.0
		for _, c := range mix {
			takes += c.share * q.takes(c.counts)
		}
		if takes > 0 {
			busiest := peak
			if q.per == 86_400 {
				busiest = 1
			}
			all = append(all, bound{q, q.limit / takes * 86_400 / q.per / busiest})
		}
	}
	busy := map[string]float64{} // seconds of requests, by function
	var names []string
	for _, c := range mix {
		for _, i := range c.Invocations {
			if busy[i.Function] == 0 {
				names = append(names, i.Function)
			}
			busy[i.Function] += c.share * i.seconds()
		}
	}
	for _, name := range names {
		f := functions[name]
		atOnce := float64(f.MaxInstances * f.Concurrency)
		all = append(all, bound{quota{name: "instances of `" + f.Name + "`", limit: float64(f.MaxInstances), per: 1,
			source: fmt.Sprintf("infra/functions.json: %d instances with %d requests each", f.MaxInstances,
				f.Concurrency),
			answer: "`maxInstances` in infra/functions.json; beyond it Cloud Run answers 429"},
			atOnce / busy[name] * 86_400 / peak})
	}
	slices.SortStableFunc(all, func(a, b bound) int { return cmp.Compare(a.runs, b.runs) })
	return all
}

// met returns the names of the bounds below a number of runs a day.
func met(all []bound, runs float64) string {
	var names []string
	for _, q := range all {
		if q.runs < runs {
			names = append(names, q.name)
		}
	}
	return cmp.Or(strings.Join(names, ", then "), "none")
}

var sizes = []float64{10_000, 1_000_000, 10_000_000}

// Paper returns the text of README.md.
func Paper() (string, error) {
	list, err := infra.Functions()
	if err != nil {
		return "", err
	}
	functions := map[string]infra.Function{}
	for _, f := range list.Functions {
		functions[f.Name] = f
	}
	var counted struct {
		Runs []counts `json:"runs"`
	}
	if err := strictjson.Decode(countsJSON, &counted); err != nil {
		return "", err
	}
	kinds := counted.Runs
	var b strings.Builder
	b.WriteString(head)
	writeCounts(&b, kinds)
	writePrices(&b)
	b.WriteString(afterPrices())
	writeMonths(&b, kinds, functions)
	writeProfiles(&b, kinds, functions)
	if err := writeIdle(&b, list); err != nil {
		return "", err
	}
	writeFiles(&b)
	writeBounds(&b, kinds, functions)
	writeBrowsers(&b, functions)
	return b.String(), nil
}

const head = `# What it costs, on paper

` + "`go test ./infra/cost -update`" + ` writes this page from the counts of a test (` + "`go test ./shared/app -run CountsOfRun`" + `), the prices and
assumptions in [inputs.go](inputs.go), and [functions.json](../functions.json). A test compares them: if you change the usage of a run, update this page.

## What a run takes

The billed documents, messages and log lines of one run, from the user's prompt to the end, with a linked account. Polls (` + "`Prefer: wait`" + `) and
[open consoles](#what-open-consoles-take) are not included.

`

func writeCounts(b *strings.Builder, kinds []counts) {
	b.WriteString("| a run | functions called | documents read | written | messages | lines of log | calls of " +
		"the model |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range kinds {
		var names []string
		for _, i := range c.Invocations {
			names = append(names, "`"+i.Function+"`")
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d |\n", c.Kind, strings.Join(names, ", "), c.Reads, c.Writes,
			c.Messages, c.LogLines, c.modelCalls())
	}
}

func writePrices(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Prices\n\nRead on %s, in US dollars, without free tiers. Network and storage are those of "+
		"uploaded files.\n\n", day)
	b.WriteString("| for | list price | page |\n| --- | --- | --- |\n")
	for _, p := range prices {
		fmt.Fprintf(b, "| %s | %s | %s |\n", p.name, p.list, p.source)
	}
}

func afterPrices() string {
	return fmt.Sprintf(`
Assumptions: a model call takes %v s, %d tokens of input and %d of output. An effect takes %v s, and the rest of a request %v s. A request has %d bytes of log
(our line and the platform's). An instance is paid for while it has a request. Under load, an instance is filled to half of its concurrency.
The busiest minute of a day has %v times the average. The cost of stored documents is not included.

Each access to a document is counted as one entry of Google's audit of %d bytes; a query or a commit of several documents is one access, so this is the most that it
can be. The audit's bucket keeps that audit and the lines of functions for 400 days; `+"`_Default`"+` does not have them. A request through the load balancer has %d bytes with its
answer, and a line of log of %d bytes. Each effect decrypts one token with Cloud KMS, and each approval
is one signature, if decisions are signed.

## The cost of a month

US dollars a month, by runs a day, if all runs are of one kind. The part for the model is in brackets.

`, modelSeconds, tokensIn, tokensOut, effectSeconds, ownSeconds, logLineBytes, peak, accessBytes,
		requestBytes, edgeLineBytes)
}

func writeMonths(b *strings.Builder, kinds []counts, functions map[string]infra.Function) {
	b.WriteString("| a run |")
	for _, n := range sizes {
		fmt.Fprintf(b, " %s a day |", grouped(n))
	}
	b.WriteString("\n| --- | --- | --- | --- |\n")
	for _, c := range kinds {
		fmt.Fprintf(b, "| %s |", c.Kind)
		for _, n := range sizes {
			fmt.Fprintf(b, " %s |", withModel(month(only(c), functions, n)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe cost of e-mails by item:\n\n| | " + columns() + " |\n| --- | --- | --- | --- |\n")
	c := kinds[slices.IndexFunc(kinds, func(c counts) bool { return c.Kind == mail })]
	for i, s := range month(only(c), functions, 0) {
		fmt.Fprintf(b, "| %s |", s.what)
		for _, n := range sizes {
			fmt.Fprintf(b, " %s |", grouped(month(only(c), functions, n)[i].dollar))
		}
		b.WriteString("\n")
	}
}

// withModel returns the sum of the items, and the part for the model in brackets.
func withModel(items []share) string {
	model := items[slices.IndexFunc(items, func(s share) bool { return s.what == "the model" })]
	return fmt.Sprintf("%s (%s)", grouped(sum(items)), grouped(model.dollar))
}

// columns returns the headings of the sizes.
func columns() string {
	var all []string
	for _, n := range sizes {
		all = append(all, grouped(n)+" a day")
	}
	return strings.Join(all, " | ")
}

func writeBounds(b *strings.Builder, kinds []counts, functions map[string]infra.Function) {
	b.WriteString(`
## Which quota is exceeded first

The default quotas that are exceeded in the busiest minute of a day, if all runs are of one kind. Requests beyond a quota are retried later, or
refused with 429 and ` + "`Retry-After`" + `. No work is lost.

| a run | ` + columns() + ` |
| --- | --- | --- | --- |
`)
	for _, c := range kinds {
		fmt.Fprintf(b, "| %s |", c.Kind)
		all := bounds(only(c), functions)
		for _, n := range sizes {
			fmt.Fprintf(b, " %s |", met(all, n))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| quota | exceeded at this many runs a day | how to raise it | source |\n" +
		"| --- | --- | --- | --- |\n")
	written := map[string]bool{}
	for _, c := range []counts{kinds[slices.IndexFunc(kinds, func(c counts) bool { return c.Kind == mail })],
		kinds[0]} {
		for _, q := range bounds(only(c), functions) {
			if !written[q.name] {
				fmt.Fprintf(b, "| %s | %s of %s | %s | %s |\n", q.name, grouped(q.runs), c.Kind, q.answer, q.source)
			}
			written[q.name] = true
		}
	}
}

// grouped returns a small number with two significant digits, or a whole number with commas between thousands.
func grouped(f float64) string {
	if f < 100 {
		if f != 0 && f < 10 {
			return strconv.FormatFloat(f, 'f', 2, 64)
		}
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
