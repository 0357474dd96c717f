package shell_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// TestOpaqueRunners tests testdata/runners.txt: commands in which an option, an operand, a variable or a configuration
// names another program. Each is opaque, either because that is known or because its program or an option is unknown.
func TestOpaqueRunners(t *testing.T) {
	for _, command := range linesOf(t, "runners.txt") {
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || !j.Has(shell.Opaque) {
			t.Errorf("%s: %s, %v", command, j.Class, err)
		}
	}
}

// TestRunnersOfSh tests commands that some shells evaluate. The grammar is POSIX, because the host's shell is not known
// more precisely.
func TestRunnersOfSh(t *testing.T) {
	for _, command := range []string{"let x", "declare PATH=.", "typeset 'PATH=.'", "test x -eq 1", `[ "$x" -lt 1 ]`,
		"local PATH=.", "read PATH", "compgen -W x"} {
		if j, err := shell.Judge(command, shell.POSIX); err != nil || !j.Has(shell.Opaque) {
			t.Errorf("%s: %s, %v", command, j.Class, err)
		}
	}
	if j, err := shell.Judge("touch a && [ 2 -eq 1 ]", shell.POSIX); err != nil || j.Has(shell.Opaque) {
		t.Errorf("numbers: %+v, %v", j.Warnings, err)
	}
}

// known are commands whose programs and options are all known.
const known = `
touch a
mkdir -p a/b
mv -n a b
chmod 644 a
echo x >>notes.txt
tee /etc/hosts
cp ~/.bashrc backup
cp a b/profile.txt
mv a.service old.service
curl -o f https://h/.bashrc
chown -v root:root a
sort -t, -k2,2n -u f
head -n -5 f
split -b 10M -d f part
tar xzf a.tgz
tar -czvf a.tgz --exclude=b c
tar --extract --file a.tar -C d
unzip -o a.zip -d b
zip -r a.zip b
find . -name '*.log' -mtime +7 -print
grep -rn --include='*.go' x .
diff -ruN a b
curl -sSfL -o f https://example.com
systemctl restart nginx
systemctl status nginx --no-pager
journalctl -u nginx -n 50 --no-pager
apt-get update
apt-get install -y --no-install-recommends htop
ip addr add 10.0.0.1/8 dev a
ip -brief address
ss -tulpn
ps -eo pid,cmd
df -h
useradd -m -s /bin/bash a
wc -l f
cut -d: -f1 f
tr a-z A-Z
date +%s
/usr/bin/touch a
test -f a
[ -f a ]
printf '%s\n' a
cd /srv
export A=b
export -n A
unset A
read -p 'Name: ' a
printf '%s\n' "$a"
for ((i = 0; i < 3; i++)); do echo ${a[i]}; done
for i in 1 2; do ls $i; done
echo ${a[1]} ${a[@]} ${a:1:2} $((1 + 2))
[[ a == b ]]
[ "$a" -eq 1 ]
tar xf ./a:b
tar --force-local -xf a:b
apt install nginx
apt-get install nginx/stable
touch $x
gzip -9 f
kill -l
echo -n a
sed -n 1,5p f
jq -r .a f
ping -c 1 h
tee -a f
sha256sum -c f
`

// TestOpaqueNotForKnown checks that known commands are not called opaque.
func TestOpaqueNotForKnown(t *testing.T) {
	for command := range strings.Lines(strings.TrimSpace(known)) {
		command = strings.TrimSpace(command)
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Has(shell.Opaque) {
			t.Errorf("%s: %+v, %v", command, j.Warnings, err)
		}
	}
}

// TestDestruction checks that commands have a warning of destruction if and only if they destroy something.
func TestDestruction(t *testing.T) {
	for command := range strings.Lines(`aws ec2 terminate-instances --instance-ids i-1
		aws s3 rb s3://b
		az group delete --name x
		gcloud compute instances delete a
		rails db:drop
		bundle exec rails db:reset
		mix ecto.drop
		php artisan migrate:fresh
		python3 manage.py flush
		xbps-remove x
		opkg remove x
		qm destroy 100
		pct destroy 100
		heroku apps:destroy a
		gh repo delete a
		rabbitmqctl delete_queue a
		kafka-topics --delete --topic a
		redis-cli FLUSHALL
		psql -c 'DROP TABLE a'
		mongosh --eval 'db.dropDatabase()'
		btrfs subvolume delete a
		git branch --delete x
		git branch -d x
		git branch --del x
		git push origin :x
		git push origin +x
		git tag --delete x
		git switch --discard-changes a
		git update-ref -d a
		fdisk /dev/sda
		wipefs -a /dev/sda
		kill -9 1
		kill 1
		fuser -k /x
		fuser -vk /x
		chage -E 0 a
		rsync -a --delete a b
		rsync -a --delete --exclude -n a b
		git clean -fd
		ip link delete a
		passwd -d a
		shutdown now`) {
		command = strings.TrimSpace(command)
		if j, err := shell.Judge(command, shell.Bash); err != nil || !j.Has(shell.Destructive) {
			t.Errorf("%s: no warning, %v", command, err)
		}
	}
	for command := range strings.Lines(`ip -brief address
		ip -f inet addr
		fdisk -l
		sfdisk --dump /dev/sda
		parted -l
		chage --list a
		chage -l a
		passwd -S a
		kill -l
		kill -0 1
		killall -l
		fuser -v /x
		wipefs /dev/sda
		hdparm -I /dev/sda
		mdadm --detail /dev/md0
		tune2fs -l /dev/sda1
		rsync -avn --delete a b
		rsync --dry-run --delete a b
		git clean -nd
		apt-get -s remove a
		shutdown -c
		visudo -c
		rm --help
		aws ec2 describe-instances
		az group list
		gh issue list
		mytool /srv/remove/x
		docker run --rm i
		kubectl get pods`) {
		command = strings.TrimSpace(command)
		if j, err := shell.Judge(command, shell.Bash); err != nil || j.Has(shell.Destructive) {
			t.Errorf("%s: %+v, %v", command, j.Warnings, err)
		}
	}
}
