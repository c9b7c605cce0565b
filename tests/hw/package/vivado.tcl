# Stands in for Vivado: every command that a packaging script may use is recorded, and some answer.
# The caller sets `record`, the file to write: one call a line, words parted by tabs.  Block designs are in
# block.tcl.

set interfaces {}
set sources {}

proc call {args} {
    global record
    set out [open $record a]
    puts $out [join [lmap word $args {string map {"\t" " " "\n" " "} $word}] "\t"]
    close $out
}

# Commands that nothing is asked of.
foreach name {
    create_project update_compile_order close_project package_xo
    ipx::unload_core ipx::edit_ip_in_project ipx::associate_bus_interfaces ipx::remove_user_parameter
    ipx::create_xgui_files ipx::update_checksums ipx::check_integrity ipx::save_core
} {
    namespace eval ipx {}
    proc $name {args} "call $name {*}\$args"
}

# Commands that make an object, named by what it is made of.
foreach {name kind} {
    ipx::add_bus_parameter parameter ipx::add_register register ipx::add_register_parameter parameter
    ipx::add_field field ipx::add_memory_map map ipx::add_address_block block
} {
    proc $name {args} "call $name {*}\$args; return \[made $kind \$args\]"
}
proc made {kind words} {
    if {[lindex $words 0] ne "-quiet" || [llength $words] != 3} {
        error "$kind: expected -quiet NAME OBJECT, not $words"
    }
    return [lindex $words 2]/$kind:[lindex $words 1]
}

proc current_fileset {} { return sources_1 }
# Of what is asked for: results of a run, whose numbers the caller may set; else the object's name.
set progress 100%
set slack 0.1
set hold_slack 0.01
set pulse_slack 0.0
proc get_property {name object} {
    global progress slack hold_slack pulse_slack
    switch $name {
        PROGRESS { return $progress }
        STATUS { return "route_design ERROR" }
        STATS.WNS { return $slack }
        STATS.WHS { return $hold_slack }
        STATS.TPWS { return $pulse_slack }
        DIRECTORY { return block_project/$object }
    }
    return $object
}
proc set_property {args} {
    call set_property {*}$args
    if {[lindex $args 0] eq "-dict"} { block::set_dict [lindex $args 1] [lindex $args 2] }
}
proc ipx::current_core {} { return core }
proc ipx::get_user_parameters {args} { return {UNWANTED} }

proc add_files {args} {
    global sources
    set file [lindex $args end]
    if {![file exists $file]} { error "no file $file" }
    if {[lrange $args 0 1] ne "-fileset constrs_1"} { set sources $file }
    call add_files {*}$args
}

# Interfaces by the names of the ports, as the packager finds them; it does not know `interrupt`.
proc ipx::package_project {args} {
    global interfaces sources
    call ipx::package_project {*}$args
    set in [open $sources]
    set text [read $in]
    close $in
    foreach {whole port} [regexp -all -inline -line {^  (?:input|output) (?:\[\d+:0\] )?(ap_clk|ap_rst_n|[sm]_axi_[a-z0-9_]+?)(?:_[A-Z]+)?;$} $text] {
        if {$port ni $interfaces} { lappend interfaces $port }
    }
}
proc ipx::infer_bus_interface {port kind core} {
    global interfaces
    call ipx::infer_bus_interface $port $kind $core
    lappend interfaces $port
}
proc ipx::get_bus_interfaces {args} {
    global interfaces
    set name [lindex $args end]
    if {[lrange $args 0 2] ne {-quiet -of_objects core}} { error "get_bus_interfaces $args" }
    return [expr {$name in $interfaces ? [list interface:$name] : {}}]
}

set board_parts {xilinx.com:zcu104:part0:1.1 avnet.com:ultra96v2:part0:1.2 xilinx.com:zcu102:part0:3.4 xilinx.com:kv260_som:part0:1.4 realdigital.org:aup-zu3-8gb:part0:1.0}
source [file join [file dirname [file normalize [info script]]] block.tcl]
