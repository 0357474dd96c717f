package cost

import (
	"fmt"
	"strings"
)

// filesMonth returns the monthly cost of the given number of uploaded files a day, when as many files are deleted as
// uploaded.
func filesMonth(day float64) []share {
	n, gib := day*days, float64(fileBytes)/(1<<30)
	return []share{
		{"storage", n * fileMonths * gib * keptPrice.dollar},
		{"operations", n * (createPrice.dollar + (fileTurns+filesSaved)*fetchPrice.dollar)}, // a deletion is free
		{"load balancer", n * (1 + filesSaved) * gib * (1 << 30) * edgePrice.dollar},
		{"egress", n * filesSaved * gib * servingPrice.dollar},
		{"Cloud KMS", n * (1 + fileTurns + filesSaved) * kmsPrice.dollar},
		{"documents written", n * fileWrites * writePrice.dollar},
		{"documents read", n * fileReads * readPrice.dollar},
		{"the model", n * fileTurns * fileTokens * tokenPrice.dollar},
	}
}

// The documents of one file from its upload to its deletion, and the tokens of a file that the model reads.
const (
	// upload 3, run 2, end of the conversation 3, sweep 1; deletions count as writes
	fileWrites = 9
	// upload 3, run 1, each call of the model 1, end of the conversation 2, sweep 1
	fileReads = 10
	// a page of a PDF has at most 560
	fileTokens = 40 * 560
)

func writeFiles(b *strings.Builder) {
	fmt.Fprintf(b, `
## What uploaded files take

In addition to their runs, in US dollars a month. A file has %d MiB (a PDF of 40 pages), is read by %d calls of the model and
kept for %d months; one of %d is saved again by its user. Traffic between the bucket and the functions of its region
is free, and so is the deletion of an object.

`, fileBytes>>20, fileTurns, fileMonths, int(1/filesSaved))
	b.WriteString("| files a day |")
	for _, s := range filesMonth(1) {
		fmt.Fprintf(b, " %s |", s.what)
	}
	b.WriteString(" in all |\n|" + strings.Repeat(" --- |", len(filesMonth(1))+2) + "\n")
	for _, n := range []float64{100, 10_000, 1_000_000} {
		fmt.Fprintf(b, "| %s |", grouped(n))
		total := 0.0
		for _, s := range filesMonth(n) {
			total += s.dollar
			fmt.Fprintf(b, " %s |", grouped(s.dollar))
		}
		fmt.Fprintf(b, " %s |\n", grouped(total))
	}
}
