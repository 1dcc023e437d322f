# Completes millrace in fish: source this file, or keep it as vendor_completions.d/millrace.fish.
function __millrace
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..] 2>/dev/null)
        if string match -q ':files*' -- $line
            __fish_complete_path (string replace -r '^--[^=]*=' '' -- $words[-1])
        else
            echo $line
        end
    end
end
complete -c millrace -f -a '(__millrace)'
