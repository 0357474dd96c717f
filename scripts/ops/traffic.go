package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/infra"
)

// traffic prints a shell script of gcloud commands that decide which revisions of the functions get the requests. It
// changes nothing itself. Terraform must not move requests meanwhile (hold_traffic).
//
//   - hold: each revision that has all requests, and need not be the newest one, keeps them when a release is deployed.
//     Writes the revisions to a file.
//   - move: the newest revisions get a part of the requests, in the order of an upgrade.
//   - back: the revisions in the file get all requests again, in the opposite order.
func traffic(flags *flag.FlagSet) runFunc {
	var p trafficPlan
	flags.StringVar(&p.region, "region", "europe-west1", "the `REGION` of the deployment")
	flags.StringVar(&p.prefix, "prefix", "agent", "the `PREFIX` of the deployment")
	flags.StringVar(&p.file, "file", "held.txt", "the `FILE` with the revisions that had the requests")
	names := flags.String("functions", "all", "the `FUNCTIONS` that are deployed, as for scripts/package")
	flags.IntVar(&p.step, "step", 0, "for move: only this `STEP` of an upgrade, 1 to 3; 0: one after the other")
	flags.IntVar(&p.percent, "percent", 100, "for move: the part of the requests for the newest revisions")
	return func(_ context.Context, o *operator, args []string) error {
		if p.project = o.getenv("GOOGLE_CLOUD_PROJECT"); p.project == "" {
			return errors.New("GOOGLE_CLOUD_PROJECT is not set")
		}
		if p.step < 0 || p.step > 3 || p.percent < 1 || p.percent > 100 {
			return errors.New("-step must be 0 to 3, and -percent 1 to 100")
		}
		list, err := infra.Functions()
		if err != nil {
			return err
		}
		if p.functions, err = list.Select(strings.Split(*names, ",")); err != nil {
			return err
		}
		script := map[string]func() string{"hold": p.hold, "move": p.move, "back": p.back}[args[0]]
		if script == nil {
			return fmt.Errorf("%q is not hold, move or back", args[0])
		}
		return o.printf("%s%s", p.head(), script())
	}
}

// trafficPlan holds the values that the script is made from.
type trafficPlan struct {
	project, region, prefix, file string
	functions                     []infra.Function
	step, percent                 int
}

// head defines the shell function that calls gcloud.
func (p *trafficPlan) head() string {
	return fmt.Sprintf(`set -eu
services() { gcloud run services "$@" --project=%s --region=%s --quiet </dev/null; }
`, quoted(p.project), quoted(p.region))
}

// each returns a line for each function, in the order of an upgrade, and the longest time that one of them runs.
func (p *trafficPlan) each(command string) (lines string, seconds int) {
	for step := 1; step <= 3; step++ {
		for _, f := range p.functions {
			if f.UpgradeStep() == step && (p.step == 0 || p.step == step) {
				lines += command + " " + quoted(p.prefix+"-"+f.Name) + "\n"
				seconds = max(seconds, f.TimeoutSeconds)
			}
		}
	}
	return lines, seconds
}

func (p *trafficPlan) hold() string {
	p.step = 0
	lines, _ := p.each("hold")
	return fmt.Sprintf(`file=%s
if [ -e "$file" ]; then echo "$file exists: the requests are held already" >&2; exit 1; fi
hold() {
	now=$(services describe "$1" --format='value(status.traffic[].percent,status.traffic[].revisionName)')
	set -- "$1" $now
	if [ "$#" != 3 ] || [ "$2" != 100 ]; then
		echo "$1 divides its requests among revisions: send all of them to one revision first" >&2
		exit 1
	fi
	services update-traffic "$1" --to-revisions="$3=100"
	echo "$1 $3" >> "$file"
}
%s`, quoted(p.file), lines)
}

func (p *trafficPlan) move() string {
	to := fmt.Sprintf("--to-revisions=LATEST=%d", p.percent)
	if p.percent == 100 {
		to = "--to-latest"
	}
	lines, seconds := p.each("move")
	return fmt.Sprintf("move() { services update-traffic \"$1\" %s; }\n%secho 'Requests that have begun at an earlier "+
		"revision end there, within %d s.'\n", to, lines, seconds)
}

func (p *trafficPlan) back() string {
	return fmt.Sprintf(`file=%s
if [ ! -s "$file" ]; then echo "$file has no revisions: run traffic hold before a deployment" >&2; exit 1; fi
awk '{ line[NR] = $0 } END { for (i = NR; i > 0; i--) print line[i] }' "$file" |
while read -r service revision; do
	services update-traffic "$service" --to-revisions="$revision=100"
done
`, quoted(p.file))
}

// quoted returns the text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
